"""Replicas whose clocks are wrong: libfaketime (Debian's `faketime`) under the process that forks them.

Each replica has a file that says what its clock shows (`+5s`, `-300s`, `+0 x1.01`), read at each look at the clock, so
that a clock may also be set while its replica runs. CLOCK_MONOTONIC and CLOCK_BOOTTIME stay true, as on a real machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from replicas import Fleet, Nursery, Replica

CLOCK = "FAKETIME_TIMESTAMP_FILE"


def library() -> Path | None:
    """libfaketime, where Debian's package has put it."""
    return next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))), None)


class ClockedFleet(Fleet):
    """A fleet whose replicas start with a clock of their own."""

    def start_at(self, clock: str, jobs: str, name: str | None = None, **settings: Any) -> Replica:
        """As `start`; `clock` in libfaketime's words."""
        name = name or f"r{len(self.replicas)}"
        self.set_clock(name, clock)
        self.environment[CLOCK] = str(self._file(name))
        return self.start(jobs, name, **settings)

    def drifting(self, rate: float) -> str:
        """The clock that is right now and runs so fast: libfaketime counts from the start of its first process."""
        gone = time.time() - psutil.Process(self._nursery.pid).create_time()
        return f"{gone * (1 - rate):+.3f}s x{rate}"

    def set_clock(self, name: str, clock: str) -> None:
        """Set the clock of this replica and its children. By rename: it is read at any time."""
        new = self.folder / f"{name}.clock.new"
        new.write_text(f"{clock}\n")
        new.rename(self._file(name))

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.clock"


@pytest.fixture(scope="session")
def clocked_nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """A nursery under libfaketime; skipped where that is absent."""
    found = library()
    if found is None:
        pytest.skip("libfaketime is not installed (Debian's package `faketime`)")
    right = tmp_path_factory.mktemp("clock") / "right"
    right.write_text("+0\n")
    environment = {
        "LD_PRELOAD": str(found),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_DISABLE_SHM": "1",
        CLOCK: str(right),
    }
    made = Nursery(environment)
    yield made
    made.close()


@pytest.fixture
def clocked_fleet(clocked_nursery: Nursery, tmp_path: Path, database_url: str) -> Iterator[ClockedFleet]:
    made = ClockedFleet(clocked_nursery, tmp_path, database_url)
    yield made
    made.close()
