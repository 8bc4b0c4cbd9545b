"""A web application that embeds Soloist, as servers start them: `web_application.py HOW URL JOBS FOLDER WORKERS`.

HOW: `each` (every worker starts a scheduler), `master` (the master does, and forks its workers afterwards), `both`, or
`none` (they serve pages only: nothing is started). Each process writes its events to a journal of its own.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from replica_nursery import BODIES, Journal  # noqa: E402

from scheduler import Soloist  # noqa: E402
from scheduler.config.jobs_file import parse  # noqa: E402
from scheduler.config.settings import Settings  # noqa: E402
from scheduler.runner.service import Service  # noqa: E402


def embedded(name: str, url: str, jobs: str, folder: Path) -> Service:
    plan = parse(Path(jobs).read_bytes(), "jobs.yaml", BODIES)
    settings = Settings(replica=name, lease=15.0, drain=2.0, seats=4)
    return Soloist(settings, plan, url, (Journal(str(folder / f"{name}.journal")),)).service()


def live(service: Service | None, folder: Path, name: str) -> None:
    """Serve pages until told to stop."""
    if service is not None:
        service.start()
    (folder / f"{name}.serves").touch()
    signal.sigwait({signal.SIGTERM})
    if service is not None:
        service.stop()
        service.drain()


def main() -> int:
    how, url, jobs, folder, workers = sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]), int(sys.argv[5])
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    master = embedded("master", url, jobs, folder)
    if how in ("master", "both"):
        master.start()
    pids = []
    for number in range(workers):
        pid = os.fork()
        if pid == 0:
            name = f"worker{number}"
            live(embedded(name, url, jobs, folder) if how in ("each", "both") else None, folder, name)
            return 0  # through the interpreter's own end, as a server's worker goes
        pids.append(pid)
    (folder / "master.serves").touch()
    signal.sigwait({signal.SIGTERM})
    for pid in pids:
        os.kill(pid, signal.SIGTERM)
    failed = sum(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0 for pid in pids)
    if how in ("master", "both"):
        master.stop()
        master.drain()
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
