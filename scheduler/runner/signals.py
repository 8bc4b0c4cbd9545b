"""SIGTERM, SIGINT and SIGHUP, made safe and never missed.

A handler in Python runs in the main thread only, between any two of its instructions: also while that thread holds the
very lock that `Event.set` needs, and not at all while it sleeps on one. The kernel may deliver a signal to any thread
(it does so where the main one has just been continued after a SIGSTOP), and then nothing would wake the sleeper. So the
interpreter itself writes the signal's number to a pipe, in whichever thread it arrives, and a thread does the rest.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

STOPPING = (signal.SIGTERM, signal.SIGINT)


def stop_on_signals(stop: Callable[[], None], reload: Callable[[], None] | None = None) -> None:
    """Call `stop`, in a thread of its own, for every SIGTERM and SIGINT. From the main thread only.

    `reload` is called for SIGHUP, but `stop` where that means that our terminal is gone. None: SIGHUP is left alone.
    """
    listened = STOPPING if reload is None else (*STOPPING, signal.SIGHUP)
    on_terminal = os.isatty(0)
    read, write = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(write, False)

    def listen() -> None:
        while said := os.read(read, 1):
            number = said[0]  # other signals that have a handler in Python are written too
            if number in STOPPING or (number == signal.SIGHUP and on_terminal and hung_up()):
                stop()
            elif number == signal.SIGHUP and reload is not None:
                reload()

    def noted(_number: int, _frame: FrameType | None) -> None:
        """Its being there is what counts: without a handler in Python nothing is written to the pipe."""

    threading.Thread(target=listen, name="signals", daemon=True).start()
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in listened:
        signal.signal(number, noted)


def hung_up() -> bool:
    """Whether the terminal on stdin is gone."""
    try:
        os.tcgetpgrp(0)
    except OSError:
        return True
    return False
