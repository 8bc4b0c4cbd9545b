"""What the tests of the kinds execute: well-behaved bodies, and all the others."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from scheduler import Cancelled, Fatal, LeaseLost, Retry, RunContext, Skip

os.environ.setdefault("SET_AT_IMPORT", "by the module")
_NEVER = threading.Event()


class OddError(Exception):
    """Cannot be printed."""

    def __str__(self) -> str:
        raise RuntimeError("no text for you")


def noop(ctx: RunContext) -> None:
    """Nothing."""


def echo(ctx: RunContext, value: Any = None) -> Any:
    return value


def pid(ctx: RunContext) -> int:
    return os.getpid()


def facts(ctx: RunContext) -> dict[str, Any]:
    return {
        "job": ctx.job,
        "run_key": ctx.run_key,
        "run_id": str(ctx.run_id),
        "scheduled_at": ctx.scheduled_at.isoformat(),
        "deadline": ctx.deadline and ctx.deadline.isoformat(),
        "attempt": ctx.attempt,
        "payload": ctx.payload,
        "checkpoint": ctx.checkpoint,
        "trace_id": ctx.trace_id,
    }


def a_set(ctx: RunContext) -> Any:
    return {1, 2}


def not_a_number(ctx: RunContext) -> float:
    return float("nan")


def large(ctx: RunContext, size: int) -> str:
    return "x" * size


def deep(ctx: RunContext) -> Any:
    sys.setrecursionlimit(200_000)
    value: list[Any] = []
    for _ in range(20_000):
        value = [value]
    return value


def nul_and_surrogate(ctx: RunContext) -> Any:
    return {"a\x00b": ["c\ud800d", "\U0001f600"]}


def odd_text(ctx: RunContext) -> None:
    raise ValueError("NUL \x00 and \ud800")


def odd_log(ctx: RunContext) -> None:
    ctx.logger.info("log \x00 \ud800 end")


def boom(ctx: RunContext, text: str = "the reason") -> None:
    raise ValueError(text)


def odd(ctx: RunContext) -> None:
    raise OddError


def retry(ctx: RunContext, after: float) -> None:
    raise Retry("later", after=after)


def skip(ctx: RunContext) -> None:
    raise Skip("nothing to do")


def fatal(ctx: RunContext) -> None:
    raise Fatal("never")


def cancelled(ctx: RunContext) -> None:
    raise Cancelled("by itself")


def lease_lost(ctx: RunContext) -> None:
    raise LeaseLost("fenced")


def sys_exit(ctx: RunContext, code: Any) -> None:
    sys.exit(code)


async def coroutine(ctx: RunContext, value: int) -> int:
    await asyncio.sleep(0)
    return value + 1


async def coroutine_that_waits(ctx: RunContext, path: str) -> None:
    try:
        _mark(path)
        await asyncio.sleep(600)
    finally:
        print("cleaned up")


def talk(ctx: RunContext) -> None:
    print("printed")
    print("to stderr", file=sys.stderr)
    logging.getLogger("a.library").warning("warned")
    logging.getLogger("a.library").debug("never seen")
    ctx.logger.info("logged")
    subprocess.run(["sh", "-c", "echo from a process"], check=True)


def progress(ctx: RunContext, path: str) -> None:
    ctx.progress(3, 10, "ü" * 100)
    _mark(path)
    _NEVER.wait(600)


def say_and_end(ctx: RunContext) -> None:
    ctx.progress(7)


def until_cancelled(ctx: RunContext, path: str) -> str:
    _mark(path)
    while not ctx.cancelled:
        _NEVER.wait(0.01)
    return "stopped half-way"


def raise_if_cancelled(ctx: RunContext, path: str) -> None:
    _mark(path)
    while True:
        ctx.raise_if_cancelled()
        _NEVER.wait(0.01)


def deaf(ctx: RunContext, path: str, seconds: float) -> str:
    """Never looks at `ctx.cancelled`."""
    _mark(path)
    _NEVER.wait(seconds)
    return "done"


def wait(ctx: RunContext, path: str) -> None:
    try:
        _mark(path)  # in here: who sees it may end the body at once
        _NEVER.wait(600)
    finally:
        print("cleaned up")


def swallow_term(ctx: RunContext, path: str) -> str:
    try:
        _mark(path)
        _NEVER.wait(600)
    except BaseException:
        print("swallowed")
    return "as if nothing had been"


def ignore_term(ctx: RunContext, path: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _mark(path)
    _NEVER.wait(600)


def hold_gil(ctx: RunContext, path: str) -> None:
    _mark(path)
    sum(range(10**12))


def hold_gil_in_regex(ctx: RunContext, path: str) -> None:
    _mark(path)
    re.match(r"(a+)+$", "a" * 60 + "b")


def hard_exit(ctx: RunContext, code: int) -> None:
    os._exit(code)


def segfault(ctx: RunContext) -> None:
    ctypes.string_at(0)


def kill_itself(ctx: RunContext, number: int) -> None:
    os.kill(os.getpid(), number)
    _NEVER.wait(600)


def close_everything(ctx: RunContext) -> None:
    os.closerange(3, 1000)


def send_rubbish(ctx: RunContext) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            with contextlib.suppress(OSError):
                os.write(int(name), b"?")


def family(ctx: RunContext, path: str, then: str) -> None:
    """A grandchild in the group that ignores TERM and holds the pipe, and one with a session of its own."""
    near = subprocess.Popen(["sh", "-c", "trap '' TERM; echo ready; sleep 600 & wait; sleep 600"])
    far = subprocess.Popen(["sleep", "600"], start_new_session=True)
    _mark(path, near.pid, far.pid)
    if then == "gil":
        sum(range(10**12))
    elif then == "wait":
        _NEVER.wait(600)


def background(ctx: RunContext, path: str, code: int) -> None:
    """Ends with an exit code and leaves a process behind."""
    left = subprocess.Popen(["sleep", "600"])
    _mark(path, left.pid)
    sys.exit(code)


def zombie(ctx: RunContext) -> int:
    """A process that ended and was never waited for."""
    pid = os.posix_spawnp("true", ["true"], os.environ)  # a Popen that is forgotten buries it
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        _NEVER.wait(0.01)
    return os.getpid()


def left_thread(ctx: RunContext) -> int:
    threading.Thread(target=_NEVER.wait, args=(600,), daemon=True).start()
    return os.getpid()


def own_thread(ctx: RunContext) -> int:
    threading.Thread(target=_NEVER.wait, args=(600,), daemon=True, name="soloist-watch").start()
    return os.getpid()


def fork_and_return(ctx: RunContext) -> int:
    me = os.getpid()
    child = os.fork()
    if child == 0:
        return -1
    os.waitpid(child, 0)
    return me


def fork_and_raise(ctx: RunContext, code: int) -> int:
    child = os.fork()
    if child == 0:
        sys.exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def spoil(ctx: RunContext, directory: str) -> int:
    """Changes everything that a process has but one."""
    os.chdir(directory)
    os.umask(0o777)
    os.environ["SPOILT"] = "yes"
    os.environ.pop("PATH")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 60)  # it must not go off before it is put right
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR1])
    logging.disable(logging.CRITICAL)
    logging.basicConfig(force=True, level=logging.ERROR)
    sys.setrecursionlimit(123)
    sys.stdout.close()
    os.close(2)
    sys.stderr = None  # type: ignore[assignment]
    return os.getpid()


def state(ctx: RunContext) -> dict[str, Any]:
    umask = os.umask(0)
    os.umask(umask)
    print("out")
    ctx.logger.info("log")
    return {
        "pid": os.getpid(),
        "cwd": str(Path.cwd()),
        "umask": umask,
        "environ": dict(os.environ),
        "ignored": [int(n) for n in range(1, 32) if signal.getsignal(n) == signal.SIG_IGN],
        "blocked": sorted(int(n) for n in signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "timer": signal.getitimer(signal.ITIMER_REAL),
        "recursion": sys.getrecursionlimit(),
        "stdin": sys.stdin.read(),
    }


def environment(ctx: RunContext, name: str) -> str | None:
    return os.environ.get(name)


def flood(ctx: RunContext, megabytes: int) -> None:
    block = b"x" * 65536
    for _ in range(megabytes * 16):
        os.write(1, block)
    print("the end")


def endless_writer(ctx: RunContext, path: str) -> None:
    """A grandchild goes on writing into the pipe after the body's end."""
    writer = subprocess.Popen(["yes"])
    _mark(path, writer.pid)


def memory(ctx: RunContext, megabytes: int) -> None:
    block = bytearray(megabytes << 20)
    block[::4096] = b"x" * len(block[::4096])


def burn(ctx: RunContext) -> None:
    sum(range(10_000_000))


def threads_in_zygote(ctx: RunContext, module: str) -> bool:
    return module in sys.modules


def database(ctx: RunContext) -> int:
    with ctx.connect() as connection:
        return int(connection.exec_driver_sql("SELECT 42").scalar_one())


def _mark(path: str, *pids: int) -> None:
    """Say that the body is at work: its pid and its processes' pids, all at once."""
    draft = Path(f"{path}.draft")
    draft.write_text(" ".join(map(str, (os.getpid(), *pids))))
    draft.rename(path)
