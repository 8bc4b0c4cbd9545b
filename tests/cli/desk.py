"""The command line as people have it: processes in a folder of their own, with nothing of this environment's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psutil
from preloaded import Preloaded

REPO = Path(__file__).parents[2]
LIMIT = 60.0
Said = TypeVar("Said")
JOBS = """
def quick(ctx):
    print("hello", ctx.run_key)

def broken(ctx):
    raise ValueError("boom")

def slow(ctx, seconds=600):
    import threading
    threading.Event().wait(seconds)
"""


@dataclass
class Answer:
    """What a command said."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        found = json.loads(self.out)
        assert isinstance(found, list)
        return found


@dataclass
class Running:
    """A command that goes on. Its output is gathered by threads, so that no pipe ever fills up."""

    process: subprocess.Popen[str]
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._threads = [
            threading.Thread(target=self._gather, args=(pipe,), daemon=True)
            for pipe in (self.process.stdout, self.process.stderr)
        ]
        for thread in self._threads:
            thread.start()

    def _gather(self, pipe: Any) -> None:
        self.said.extend(pipe)

    @property
    def text(self) -> str:
        return "".join(self.said)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Signal it, wait for its end, return its exit code."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        code = self.process.wait(LIMIT)
        for thread in self._threads:
            thread.join(LIMIT)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        return code


@dataclass
class Desk:
    """A person's working directory. `env`: what their shell has set."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)
    started: list[Running] = field(default_factory=list)
    loaded: Preloaded | None = None

    def run(self, *words: str, env: dict[str, str] | None = None) -> Answer:
        """A command to its end, in a copy of a process that has it loaded if there is one."""
        if self.loaded is None or any(name.startswith(("PYTHON", "LC_")) for name in env or {}):
            return self.run_afresh(*words, env=env)
        answer = Answer(*self.loaded.run(words, self.folder, self.environment(env), LIMIT))
        assert "Traceback" not in answer.err, answer.err
        return answer

    def run_afresh(self, *words: str, env: dict[str, str] | None = None) -> Answer:
        """The same in an interpreter that begins with it, as a person's does."""
        done = subprocess.run(
            [sys.executable, "-m", "scheduler", *words],
            cwd=self.folder,
            env=self.environment(env),
            capture_output=True,
            text=True,
            timeout=LIMIT,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Answer(done.returncode, done.stdout, done.stderr)

    def start(self, *words: str, env: dict[str, str] | None = None) -> Running:
        running = Running(
            subprocess.Popen(
                [sys.executable, "-m", "scheduler", *words],
                cwd=self.folder,
                env=self.environment(env),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        )
        self.started.append(running)
        return running

    def write(self, **jobs: dict[str, Any]) -> None:
        """The jobs file (JSON is YAML); underscores in names become hyphens."""
        entries = {name.replace("_", "-"): entry for name, entry in jobs.items()}
        (self.folder / "jobs.yaml").write_text(json.dumps({"version": 1, "jobs": entries}))

    def environment(self, more: dict[str, str] | None = None) -> dict[str, str]:
        return clean_environment() | self.env | (more or {})


def clean_environment() -> dict[str, str]:
    """A shell's that nobody has set anything of Soloist's in."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("SOLOIST_", "PYTEST_")) and k != "NO_COLOR"}
    return clean | {"PYTHONPATH": str(REPO)}


def asked(processes: list[psutil.Process], question: Callable[[psutil.Process], Said]) -> dict[psutil.Process, Said]:
    """What each of them answers; one that has just gone says nothing."""
    answers = {}
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            answers[process] = question(process)
    return answers


def end_tree(pid: int) -> None:
    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(pid)
        for process in [parent, *parent.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                process.kill()


def end_server(data: Path) -> None:
    with suppress(OSError, ValueError, psutil.Error):
        server = psutil.Process(int((data / "postmaster.pid").read_text().split(maxsplit=1)[0]))
        if Path(server.cwd()) == data:
            server.send_signal(signal.SIGQUIT)
            server.wait(LIMIT)
