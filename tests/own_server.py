"""A PostgreSQL of one test's own: it may be stopped, restarted and frozen without anybody else noticing."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from patience import give_schema
from replicas import Fleet, Nursery
from started_server import started_server


class OwnServer:
    """A PostgreSQL of one test's own, that may be stopped and started."""

    def __init__(self, folder: Path) -> None:
        self._server = started_server(folder / "data")
        self.url: str = self._server.get_uri()
        self._data = folder / "data"

    def control(self, *words: str) -> None:
        """pg_ctl, as the server's own user."""
        program = [str(self._server.bin_path / "pg_ctl"), "-D", str(self._data), "-w", *words]
        user = self._server.system_user
        subprocess.run(program, check=True, user=user, capture_output=True, cwd="/", timeout=60)

    def stop(self) -> None:
        self.control("-m", "fast", "stop")

    def start(self) -> None:
        options = " ".join((self._data / "postmaster.opts").read_text().split()[3:])  # as before
        self.control("-l", str(self._data / "log"), "-o", options, "start")

    def restart(self, mode: str = "fast") -> None:
        """`fast`: sessions are ended and told so; `immediate`: as in a crash."""
        self.control("-l", str(self._data / "log"), "-m", mode, "restart")

    def processes(self) -> list[psutil.Process]:
        postmaster = psutil.Process(int((self._data / "postmaster.pid").read_text().split()[0]))
        return [postmaster, *postmaster.children(recursive=True)]

    def close(self) -> None:
        if (self._data / "postmaster.pid").exists():
            self.control("-m", "immediate", "stop")


@pytest.fixture
def own_server() -> Iterator[OwnServer]:
    folder = Path(tempfile.mkdtemp(prefix="so-"))
    made = OwnServer(folder)
    yield made
    made.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def own_fleet(nursery: Nursery, tmp_path: Path, own_server: OwnServer) -> Iterator[Fleet]:
    give_schema(own_server.url)
    made = Fleet(nursery, tmp_path, own_server.url)
    yield made
    made.close()
