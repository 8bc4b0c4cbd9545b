"""A process with the command line loaded, which forks a copy of itself for each command.

A fresh interpreter spends a second on imports, which a person does not mind and hundreds of tests do. What a command
sees is the same: a process of its own, with the folder, the environment and the standard streams it was given.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import random
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

MESSAGE = 1 << 20


class Preloaded:
    """The asker's side. One command at a time."""

    def __init__(self, environment: dict[str, str]) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, __file__, str(theirs.fileno())]
            self._process = subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()])
        self._door = ours

    def run(
        self, words: tuple[str, ...], folder: Path, environment: dict[str, str], limit: float
    ) -> tuple[int, str, str]:
        """The exit code (negative: the signal), what stdout and stderr got. TimeoutError after `limit` seconds."""
        out, err = os.memfd_create("out"), os.memfd_create("err")
        try:
            order = json.dumps({"words": words, "folder": str(folder), "environment": environment}).encode()
            socket.send_fds(self._door, [order], [out, err])
            pid = int(self._door.recv(MESSAGE))
            self._door.settimeout(limit)
            try:
                code = int(self._door.recv(MESSAGE))
            except TimeoutError:
                os.kill(pid, 9)
                self._door.recv(MESSAGE)
                raise
            return code, _all_of(out), _all_of(err)
        finally:
            self._door.settimeout(None)
            os.close(out)
            os.close(err)

    def close(self) -> None:
        self._door.close()
        self._process.wait()


def _all_of(descriptor: int) -> str:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode()


def serve(door: socket.socket) -> None:
    """Carry out orders until the asker is gone."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(door, MESSAGE, 2)
        if not message:
            return
        pid = os.fork()
        if pid == 0:
            door.close()
            become(json.loads(message), *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        door.send(str(pid).encode())
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with suppress(BrokenPipeError):
            door.send(str(code).encode())


def become(order: dict[str, object], out: int, err: int) -> None:
    """In the child: what `python -m scheduler` is to the command, and the command itself. Never returns."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, number in ((nothing, 0), (out, 1), (err, 2)):
        os.dup2(descriptor, number)
        os.close(descriptor)
    folder, environment = str(order["folder"]), order["environment"]
    assert isinstance(environment, dict)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    random.seed()  # or each copy would draw the same jitter
    sys.path[0] = folder  # where `python -m` has the working directory
    sys.argv = ["soloist", *order["words"]]  # type: ignore[misc]
    from scheduler.__main__ import main

    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    for thread in threading.enumerate():
        if not (thread.daemon or thread is threading.current_thread()):
            thread.join()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # an interpreter's own end would free a thousand modules: longer than most commands


if __name__ == "__main__":
    import scheduler

    for module in pkgutil.walk_packages(scheduler.__path__, "scheduler."):
        if not module.name.endswith(("__main__", ".env")) and ".versions." not in module.name:
            importlib.import_module(module.name)
    from scheduler.store import connect, engine

    # as in `patience`: a command connects once, and a pause of the machine is no answer
    connect.CONNECT_DEADLINE = engine.CONNECT_DEADLINE = 60.0
    gc.freeze()  # no collection in a copy touches, and so copies, what is loaded
    serve(socket.socket(fileno=int(sys.argv[1])))
