"""The jobs of a storm, and what each was promised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chaos.evidence import Rules

EVERY = 0.5  # seconds between two ticks of a job
Job = tuple[dict[str, Any], Rules]


def storm_jobs(path: Path) -> dict[str, Job]:
    """Name → (entry of the jobs file, rules). `path`: the file of effects."""
    wide = {"overlap": "allow"}
    return {
        "alone": (_entry("work", path, 0.15), Rules()),
        "locked": (_entry("work", path, 0.3, guard="advisory_lock"), Rules()),
        # long enough to be found alive by whoever takes over; what gives way to it is skipped
        "long": (_entry("work", path, 4.0), Rules()),
        "wide": (_entry("work", path, 5.0, **wide), Rules(exclusive=False)),
        "lasting": (_entry("work", path, 2.0, **wide, lost_contact="continue"), Rules(exclusive=False, stopped=False)),
        "once": (_entry("work", path, 0.3, **wide, after_crash="fail"), Rules(exclusive=False, at_most_once=True)),
        "ledger": (_entry("transact", path, 0.2, **wide), Rules(exclusive=False, transactional=True)),
        # nobody kills a thread: what its replica does after a freeze is held off by the fence alone. So long that
        # almost every freeze meets one
        "zombie": (
            _entry("transact", path, 1.5, **wide, isolation="thread"),
            Rules(exclusive=False, stopped=False, transactional=True),
        ),
        "flaky": (
            _entry("flaky", path, 0.3, **wide, isolation="thread", retry={"attempts": 3, "backoff": "100ms"}),
            Rules(exclusive=False, stopped=False),
        ),
    }


def at_rest(entry: dict[str, Any]) -> dict[str, Any]:
    """The same job with no tick to come: what it owes is accounted for, and what is queued still runs."""
    return {**{key: value for key, value in entry.items() if key != "every"}, "at": "2020-01-01T00:00:00Z"}


def _entry(body: str, path: Path, seconds: float, **fields: Any) -> dict[str, Any]:
    every = f"{round(EVERY * 1000)}ms"
    args = {"path": str(path), "seconds": seconds}
    return {"call": f"storm_bodies:{body}", "every": every, "retry": {"backoff": "100ms"}, "args": args, **fields}
