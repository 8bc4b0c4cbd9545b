"""The few things that only Linux offers, and the sentence for those who are elsewhere."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import sys
from contextlib import suppress

from scheduler.core.errors import SoloistError

_PDEATHSIG = 1
_SET_NAME = 15
_CHILD_SUBREAPER = 36


def require_linux() -> None:
    """Raise SoloistError elsewhere: without pidfd, subreaper and PDEATHSIG a stopped replica's body would go on."""
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        raise SoloistError(
            f"isolation: process needs Linux 5.3 or newer (this is {sys.platform}): "
            "set `isolation: thread` for the job, or under `defaults`"
        )


def adopt_orphans() -> None:
    """Processes below us that lose their parent become our children, those with a session of their own too."""
    _prctl(_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """SIGKILL for us when `parent` dies. Sound only if the parent has one thread: the kernel watches that thread."""
    _prctl(_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the kernel was asked
        os._exit(0)


def kill_group_at_end(pipe: int) -> None:
    """SIGKILL for our whole group, from the kernel itself, when the last writer of this pipe closes it."""
    fcntl.fcntl(pipe, fcntl.F_SETOWN, -os.getpid())
    fcntl.fcntl(pipe, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(pipe, fcntl.F_SETFL, os.O_ASYNC)


def name_process(name: str) -> None:
    """What `top` and `ps -o comm` show; at most 15 bytes."""
    _libc().prctl(_SET_NAME, name.encode(), 0, 0, 0)


def kill_group(pid: int, number: int) -> None:
    """Signal a child and its group. The child by its own number too: it may not have made its group yet."""
    for kill in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            kill(pid, number)


def children() -> list[int]:
    """The direct children of this one-threaded process, zombies too."""
    me = os.getpid()
    with open(f"/proc/self/task/{me}/children", encoding="ascii") as listing:
        return [int(pid) for pid in listing.read().split()]


def tasks() -> int:
    """How many threads this process has, those of C libraries too."""
    return os.stat("/proc/self/task").st_nlink - 2


def _prctl(option: int, value: int) -> None:
    if _libc().prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
