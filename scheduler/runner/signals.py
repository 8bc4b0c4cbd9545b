"""SIGTERM and SIGINT, made safe: a handler runs between any two instructions of the main thread, also while that thread
holds the very lock that `Event.set` needs. So the handler only writes a byte, and a thread does the rest.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType


def stop_on_signals(stop: Callable[[], None]) -> None:
    """Call `stop`, in a thread of its own, for every SIGTERM and SIGINT. From the main thread only."""
    read, write = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(write, False)

    def tell(_number: int, _frame: FrameType | None) -> None:
        with suppress(BlockingIOError):
            os.write(write, b"s")

    def listen() -> None:
        while os.read(read, 1):
            stop()

    threading.Thread(target=listen, name="signals", daemon=True).start()
    signal.signal(signal.SIGTERM, tell)
    signal.signal(signal.SIGINT, tell)
