"""`soloist serve`: a replica, or several."""

from __future__ import annotations

import os
import socket
from typing import Annotated

import typer

from scheduler.cli.options import Jobs, Root, parse_seconds

Replicas = Annotated[
    int, typer.Option("--replicas", min=1, max=100, help="So many replicas, each a process of its own.", metavar="N")
]
Replica = Annotated[
    str | None,
    typer.Option("--replica", help="This replica's name; of several, the beginning of theirs.", metavar="NAME"),
]
Seats = Annotated[int | None, typer.Option("--seats", min=1, max=1000, help="Attempts at once. Default: 16.")]
Lease = Annotated[
    float | None,
    typer.Option("--lease", parser=parse_seconds, help="How long a claim holds. Default: 15s.", metavar="DURATION"),
]
Drain = Annotated[
    float | None,
    typer.Option("--drain", parser=parse_seconds, help="How long a stop waits. Default: 25s.", metavar="DURATION"),
]
Seed = Annotated[
    str | None,
    typer.Option("--seed", help="Call this first to make sample data; only on the embedded database.", metavar="CALL"),
]


def serve(
    jobs: Jobs = None,
    root: Root = None,
    replicas: Replicas = 1,
    replica: Replica = None,
    seats: Seats = None,
    lease: Lease = None,
    drain: Drain = None,
    seed: Seed = None,
) -> None:
    """Tick and run the jobs of the jobs file until SIGTERM or Ctrl-C; a second one does not wait for running jobs."""
    from scheduler.cli.database import opened
    from scheduler.cli.fleet import run_fleet
    from scheduler.cli.plan import load_checked
    from scheduler.cli.seed import seed as make_samples
    from scheduler.config.settings import load_settings

    alone = f"{socket.gethostname()}-{os.getpid()}"
    settings = load_settings(
        default_replica=alone if replicas == 1 else "replica",
        jobs=jobs,
        root=root,
        replica=replica,
        seats=seats,
        lease=lease,
        drain=drain,
    )
    plan = load_checked(settings.jobs, settings.root)
    with opened(settings, create=True, announce=True) as database:
        if seed is not None:
            make_samples(seed, plan.root, database)
        if replicas > 1:
            code = run_fleet(settings, database.url, replicas)
        else:
            from scheduler.app import serve_replica

            code = serve_replica(settings, plan, database.url)
    raise typer.Exit(code)
