"""What the figures are held against: our goals, and the best exactly-once peers.

The peers were measured in another session on the same machine, with a harness that counts as this one does; so read
them as orders of magnitude, and the ratio to the floor as ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Goal:
    """One line of the table. `limit` and `most`: the figure's goal (at most, or at least); None: it has none.

    `floors`: how many times the floor it may be, beside the limit.
    """

    title: str
    row: str
    cell: dict[str, Any]
    figure: str
    unit: str = ""
    limit: float | None = None
    most: bool = True
    floors: float | None = None
    peer: str = "–"


FAN_1000 = {"jobs": 1000, "replicas": 3, "isolation": "thread", "seats": 250, "logs": False}
FAN_10000 = FAN_1000 | {"jobs": 10000}
THREADS, PROCESSES = {"isolation": "thread"}, {"isolation": "process"}
WARM = {"isolation": "process", "seats": 16}
IDLE, WARMED = {"replicas": 10, "warm": False}, {"replicas": 10, "warm": True}
KILLED, FROZEN = {"how": "killed", "lease": 15.0}, {"how": "frozen", "lease": 15.0}
GOALS = (
    Goal("1,000 jobs at once, 3 replicas: all started", "fan_in", FAN_1000, "all_started_ms", "ms", peer="oban 506 ms"),
    Goal(
        "– all finished",
        "fan_in",
        FAN_1000,
        "all_finished_ms",
        "ms",
        200,
        floors=4,
        peer="oban 535 ms, chancy 1.7 s, procrastinate 5.9 s",
    ),
    Goal("– all finished, two free cores by CPU time", "fan_in", FAN_1000, "two_cores_ms", "ms", 200, floors=4),
    Goal("– statements a run", "fan_in", FAN_1000, "statements", "", 0.1, peer="oban 2.1, procrastinate 18.6"),
    Goal("– WAL a run", "fan_in", FAN_1000, "wal_bytes", "B", 1400, peer="oban 1,757 B, pgqueuer 647 B (no history)"),
    Goal("– CPU of the replicas, a run", "fan_in", FAN_1000, "cpu_ms", "ms"),
    Goal("– CPU of the server, a run", "fan_in", FAN_1000, "server_cpu_ms", "ms"),
    Goal("– with log lines: CPU of the replicas, a run", "fan_in", FAN_1000 | {"logs": True}, "cpu_ms", "ms"),
    Goal(
        "1,000 jobs at once, 8 replicas: all finished",
        "fan_in",
        FAN_1000 | {"replicas": 8},
        "all_finished_ms",
        "ms",
        peer="oban 567 ms, procrastinate 11.1 s",
    ),
    Goal(
        "10,000 jobs at once, 3 replicas: all started",
        "fan_in",
        FAN_10000,
        "all_started_ms",
        "ms",
        1000,
        peer="oban 4.4 s, pgqueuer 10.3 s, procrastinate 35 s",
    ),
    Goal(
        "– all finished, two free cores by CPU time",
        "fan_in",
        FAN_10000,
        "two_cores_ms",
        "ms",
        1000,
        peer="oban 4.5 s, pgqueuer 13.8 s (wall)",
    ),
    Goal(
        "10,000 jobs at once, 8 replicas: all started",
        "fan_in",
        FAN_10000 | {"replicas": 8},
        "all_started_ms",
        "ms",
        1000,
    ),
    Goal(
        "– all finished, two free cores by CPU time", "fan_in", FAN_10000 | {"replicas": 8}, "two_cores_ms", "ms", 1000
    ),
    Goal(
        "idle, 100 daily jobs, 10 replicas: statements of each",
        "idle",
        IDLE,
        "statements_s",
        "/s",
        0.3,
        peer="pgqueuer 0.23/s, procrastinate 0.93/s, dbos 20/s",
    ),
    Goal("– CPU of each", "idle", IDLE, "cpu_s_min", "s/min", 0.1, peer="aps4 0.002, pgqueuer 0.154"),
    Goal("– memory of each (RSS)", "idle", IDLE, "rss_mib", "MiB", 110, peer="procrastinate 40, pgqueuer 48"),
    Goal("– memory of each that has run a body in a process (RSS)", "idle", WARMED, "rss_mib", "MiB", 110),
    Goal("– the same, shared pages counted once (PSS)", "idle", WARMED, "pss_mib", "MiB"),
    Goal("– CPU of each that has run a body in a process", "idle", WARMED, "cpu_s_min", "s/min", 0.1),
    Goal("– connections of each", "idle", IDLE, "connections", "", 3, peer="pgqueuer 1, oban 4"),
    Goal(
        "one job a second, 3 replicas, threads: start delay p50",
        "latency",
        THREADS,
        "p50_ms",
        "ms",
        6,
        peer="aps4 80 ms, dbos 171 ms",
    ),
    Goal("– p99", "latency", THREADS, "p99_ms", "ms", 15, peer="aps4 106 ms, dbos 659 ms"),
    Goal("– warm processes: p50", "latency", PROCESSES, "p50_ms", "ms", 6),
    Goal("– warm processes: p99", "latency", PROCESSES, "p99_ms", "ms", 15),
    Goal(
        "queued runs, 2 replicas, threads",
        "backlog",
        THREADS,
        "runs_s",
        "/s",
        15000,
        most=False,
        peer="pgqueuer 10,371/s, oban 4,858/s, chancy 4,360/s",
    ),
    Goal("– two free cores by CPU time", "backlog", THREADS, "two_cores_runs_s", "/s", 15000, most=False),
    Goal("– enqueue to start, p50", "backlog", THREADS, "enqueue_p50_ms", "ms", 5, peer="oban 4.7 ms, pgqueuer 5.9 ms"),
    Goal("queued runs, 2 replicas, warm processes, 16 seats", "backlog", WARM, "runs_s", "/s", 5000, most=False),
    Goal("– two free cores by CPU time", "backlog", WARM, "two_cores_runs_s", "/s", 5000, most=False),
    Goal(
        "– 64 seats, two free cores by CPU time",
        "backlog",
        WARM | {"seats": 64},
        "two_cores_runs_s",
        "/s",
        10000,
        most=False,
    ),
    Goal("– enqueue to start, p50", "backlog", WARM, "enqueue_p50_ms", "ms", 5),
    Goal(
        "kill -9 of the owner: next attempt, the slowest of all rounds",
        "failover",
        KILLED,
        "max_s",
        "s",
        3,
        peer="dbos 7 s (own restart), pgqueuer 27 s, procrastinate 55 s, oban 355 s",
    ),
    Goal("– until another replica owns the run, the slowest", "failover", KILLED, "taken_max_s", "s", 3),
    Goal("– p50 of that", "failover", KILLED, "taken_p50_s", "s"),
    Goal("frozen owner (lease 15 s): next attempt, the slowest", "failover", FROZEN, "max_s", "s", 20),
)
