"""Death of the owner: how soon does the next attempt start elsewhere?

    python -m benchmarks.failover [--rounds 30] [--frozen 2] [--replicas 3] [--lease 15]

kill -9 hits the replica's process alone: what it has started is for its zygote to end. `--frozen` rounds stop it with
SIGSTOP instead; then only the lease can tell. `p50_s`, `max_s`: from the blow to the second body's first line;
`taken_…_s`: to the moment when another replica owns the run, by the database's clock. What lies between is the start of
a body; the first in a replica waits for its zygote. Fails when a run had no second attempt, more than one, or when the
first body was still at work after the second had begun.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time

from benchmarks import effects
from benchmarks.effects import Effect
from benchmarks.enqueue import enqueue
from benchmarks.floor import ADD, DDL
from benchmarks.ground import Figures, Ground, Replica, Work, ground, percentile, report

OWNER = """SELECT replica.name FROM soloist.run JOIN soloist.replica ON replica.id = run.claimed_by
WHERE run.run_key = %s AND run.status = 'running'"""
TAKEN = "SELECT extract(epoch FROM started_at)::float8 FROM soloist.run WHERE run_key = %s"
ENDED = "SELECT status, attempt FROM soloist.run WHERE run_key = %s"
SEEN = 1.5  # seconds that the others have to see that the owner lives, before it does not


def second_start(place: Ground, key: str, struck: float, wrong: list[str], within: float) -> float:
    """Seconds from the blow to the second attempt's first line; adds what was wrong about it."""

    def second() -> Effect | None:
        return next((effect for effect in place.starts() if effect.key == key and effect.attempt == 2), None)

    began: Effect = place.until(second, f"{key} starts again", step=0.02, within=within)
    time.sleep(0.2)
    all_effects = [effect for effect in effects.read(place.effects) if effect.key == key]
    late = [effect for effect in all_effects if effect.attempt == 1 and effect.at > began.at]
    if late:
        wrong.append(f"{key}: the first body was at work {late[-1].at - began.at:.3f} s into the second")
    if len(attempts := [effect.attempt for effect in all_effects if effect.what == "start"]) != 2:
        wrong.append(f"{key}: attempts {attempts}")
    return began.at - struck


def floor_round(place: Ground, wrong: list[str], key: str) -> float:
    """Two replicas: one holds the run, the other waits for its session to die."""
    place.clear()
    place.sql(DDL)
    place.sql(ADD, [key])
    with place.team([Work("floor", "failover", place.url, number=0, replicas=2)]) as team:
        place.until(place.starts, "the run starts", step=0.01)
        other = Replica(place, Work("floor", "failover", place.url, number=1, replicas=2)).ready()
        team.append(other)
        time.sleep(0.5)
        struck = team[0].kill()
        return second_start(place, key, struck, wrong, within=30)


class Fleet:
    """Soloist's replicas; whoever falls is replaced before the next round."""

    def __init__(self, place: Ground, team: list[Replica], options: argparse.Namespace) -> None:
        self._place, self._team, self._options = place, team, options
        self._born = itertools.count(len(team))

    def round(self, key: str, frozen: bool, wrong: list[str]) -> tuple[float, float]:
        """One run, one blow; seconds to the second attempt's body, and to its owner."""
        place = self._place
        enqueue(place.url, [("work", key)])
        run_key = f"manual:{key}"
        place.until(lambda: any(effect.key == run_key for effect in place.starts()), f"{key} starts")
        name = place.until(lambda: place.sql(OWNER, run_key), f"{key} has an owner")[0][0]
        victim = next(replica for replica in self._team if f"r{replica.number}" == name)
        time.sleep(SEEN)
        if frozen:
            struck = time.time()
            victim.freeze()
        else:
            struck = victim.kill()
        begun = second_start(place, run_key, struck, wrong, within=self._options.lease * 4 + 30)
        taken = place.sql(TAKEN, run_key)[0][0] - struck
        if frozen:
            victim.kill()
        (place.effects / f"{key}.gate").touch()
        ended = place.until(lambda: [row for row in place.sql(ENDED, run_key) if row[0] != "running"], f"{key} ends")
        if ended != [("succeeded", 2)]:
            wrong.append(f"{run_key} ended as {ended}")
        self._replace(victim)
        return begun, taken

    def _replace(self, fallen: Replica) -> None:
        self._team.remove(fallen)
        fallen.end()
        self._team.append(Replica(self._place, work_of(self._place, next(self._born), self._options)).ready())


def work_of(place: Ground, number: int, options: argparse.Namespace) -> Work:
    """One of Soloist's replicas."""
    return Work(
        "soloist",
        "failover",
        place.url,
        number,
        options.replicas,
        isolation=options.isolation,
        lease=options.lease,
    )


def figures(rounds: list[tuple[float, float]]) -> Figures:
    """What is said of the rounds."""
    begun, taken = [one[0] for one in rounds], [one[1] for one in rounds]
    return {
        "p50_s": percentile(begun, 0.5),
        "max_s": max(begun),
        "taken_p50_s": percentile(taken, 0.5),
        "taken_max_s": max(taken),
        "rounds": float(len(rounds)),
    }


def main() -> int:
    """Run it; 1 when something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--frozen", type=int, default=2)
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--lease", type=float, default=15.0)
    parser.add_argument("--isolation", choices=["thread", "process"], default="process")
    options = parser.parse_args()
    wrong: list[str] = []
    with ground() as place:
        floor = [(floor_round(place, wrong, f"f{n}"),) * 2 for n in range(min(options.rounds, 10))]
        place.clear()
        with place.team([work_of(place, n, options) for n in range(options.replicas)]) as team:
            fleet = Fleet(place, team, options)
            killed = [fleet.round(f"k{n}", False, wrong) for n in range(options.rounds)]
            frozen = [fleet.round(f"z{n}", True, wrong) for n in range(options.frozen)]
        common = {"replicas": options.replicas, "lease": options.lease, "isolation": options.isolation}
        for how, rounds in (("killed", killed), ("frozen", frozen)):
            if rounds:
                beside = figures(floor) if how == "killed" else {}
                report(place, "failover", {"how": how, **common}, {"floor": beside, "soloist": figures(rounds)}, wrong)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
