"""A plan that shows what a fault of the database costs: a job that ticks, and one body that is at work meanwhile."""

from __future__ import annotations

import itertools
from typing import Any

import pooler
from replicas import Fleet, Replica, eventually, jobs_file, once
from side_by_side import side_by_side


def plan(fleet: Fleet, every: str = "300ms", **fields: Any) -> str:
    """`tick`: each tick one effect, missed ones are made up for. `work` (with `fields`): holds until the gate opens."""
    path = str(fleet.effects)
    tick = {"call": "effects:append", "every": every, "overlap": "allow", "isolation": "thread", "args": {"path": path}}
    args = {"path": path, "gate": str(fleet.gate)}
    work = {"call": "effects:hold", **once(), "args": args, "crash_limit": 100, **fields}
    return jobs_file(tick={**tick, "misfire": {"policy": "all", "limit": 10_000}}, work=work)


def ticks_go_on(fleet: Fleet, number: int = 5) -> None:
    """Wait until so many ticks have run that nobody has seen yet."""
    seen = len(fleet.lines("tick"))
    eventually(lambda: len(fleet.lines("tick")) >= seen + number, f"{number} more ticks run")


def begun(fleet: Fleet) -> int:
    """Wait for the long body, and some ticks; the body's pid."""
    eventually(lambda: len(fleet.lines("tick")) >= 3, "ticks run")
    return int(eventually(lambda: fleet.lines("begin"), "the body begins")[0][4])


def accounted(fleet: Fleet, step: float = 0.3, *, once_only: bool = False) -> None:
    """No tick between the first and the last lacks its row, no attempt was made twice, and no two long bodies met.

    `once_only`: nor had any tick a second attempt. (Where an owner may be overtaken, a body that had done its work and
    could not say so is rightly repeated.)
    """
    rows = fleet.sql(
        "SELECT extract(epoch FROM scheduled_at)::float8 FROM soloist.run JOIN soloist.job ON job.id = run.job"
        " WHERE name = 'tick' ORDER BY 1"
    )
    assert {round(after - before, 3) for (before,), (after,) in itertools.pairwise(rows)} == {step}, "a tick has no row"
    made = [line[1] if once_only else (line[1], line[2]) for line in fleet.lines("tick")]
    assert len(made) == len(set(made)), "an effect was done twice"
    assert side_by_side(fleet) == []


def finished(fleet: Fleet) -> int:
    """Open the gate and wait until the long run has succeeded; its attempt."""
    fleet.gate.touch()
    eventually(lambda: [status for status, _ in fleet.statuses("work")] == ["succeeded"], "the long run succeeds")
    return int(fleet.statuses("work")[0][1])


def quiet(replica: Replica, times: int = 1, least: int = 1) -> None:
    """It lives, and has said each of so many losses and returns in a line of its own, and nothing a thousand times.

    `least`: 0 where it may not have spoken on the session that was lost.
    """
    assert replica.exit_code is None, replica.said()
    assert not replica.events("EngineFailed"), replica.said()
    said = [line for line in replica.said().splitlines() if '"level": "info"' not in line or "database" in line]
    lost = [line for line in said if "database_lost" in line]
    # a pooler may replace a session of the server that is lost while nobody speaks on it
    assert (0 if pooler.mode() else least) <= len(lost) <= times, "\n".join(line[:250] for line in lost[:20])
    assert len([line for line in said if "database_regained" in line]) <= times
    rest = [line for line in said if "database_lost" not in line and "database_regained" not in line]
    assert len(rest) <= 10 + 10 * times, "\n".join(rest[:50])
    assert "Traceback" not in replica.said()
