"""What every body finds, whatever the body before it did to its process."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO

from scheduler.pool.text import log_form

_UNTOUCHABLE = {signal.SIGKILL, signal.SIGSTOP}
_SIGNALS = sorted(number for number in signal.valid_signals() - _UNTOUCHABLE if number < signal.SIGRTMIN)
# Two ways around slow wrappers, which would be a quarter of a short body's cost: signal's own makes an enum of each
# answer, and comparing os.environ decodes every pair. Where they do not exist, the slow way does.
_handler_of: Callable[[int], Any] = getattr(sys.modules.get("_signal"), "getsignal", signal.getsignal)


def _pairs() -> Any:
    return getattr(os.environ, "_data", os.environ)


Handler = Callable[[int, Any], Any] | int | signal.Handlers | None


def reset_signals() -> None:
    """Mask empty, every signal as Python has it at start: masks and SIG_IGN survive exec and may come from afar."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in _SIGNALS:
        with suppress(OSError, ValueError):  # the C library keeps a few for itself
            signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Baseline:
    """Directory, umask, environment, signals, standard streams and logging; restored after each body.

    `output`: the descriptor that stdout, stderr and logging end in.
    """

    def __init__(self, output: int) -> None:
        self._output = output
        self._null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._streams = self._open_streams()
        self._logging = _LogHandler(self._streams[1])
        self._directory = -1
        self.take()

    def take(self) -> None:
        """What is now is what every body shall find: the import of a user's module may have set it so.

        Streams and logging are ours all the same.
        """
        self._umask = os.umask(0)
        os.umask(self._umask)
        if self._directory >= 0:
            os.close(self._directory)
        self._directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._environment, self._pairs = dict(os.environ), dict(_pairs())
        self._signals: dict[int, Handler] = {n: _handler_of(n) for n in _SIGNALS}
        self._recursion = sys.getrecursionlimit()
        self._restore_streams()
        self._restore_logging()

    def restore(self) -> None:
        """Put everything back."""
        self._restore_streams()
        self._restore_logging()
        self._restore_signals()
        os.umask(self._umask)
        os.fchdir(self._directory)
        if _pairs() != self._pairs:
            os.environ.clear()
            os.environ.update(self._environment)
        sys.setrecursionlimit(self._recursion)

    def flush(self) -> None:
        """What was printed is in the pipe when this returns."""
        for stream in {sys.stdout, sys.stderr, *self._streams}:
            with suppress(Exception):  # the body may have put anything there
                stream.flush()

    def _open_streams(self) -> tuple[TextIO, TextIO]:
        for number, source in ((0, self._null), (1, self._output), (2, self._output)):
            os.dup2(source, number)
        # New ones: those that Python made at its start belong to the replica's files (and may think they can seek).
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
        return _open_stream(1), _open_stream(2)

    def _restore_streams(self) -> None:
        if any(stream.closed for stream in self._streams):
            self._streams = self._open_streams()
            self._logging = _LogHandler(self._streams[1])
        for number, source in ((0, self._null), (1, self._output), (2, self._output)):
            os.dup2(source, number)
        sys.stdout, sys.stderr = self._streams

    def _restore_logging(self) -> None:
        if logging.root.manager.disable:
            logging.disable(logging.NOTSET)
        root = logging.getLogger()
        if root.handlers != [self._logging]:
            root.handlers[:] = [self._logging]
        if root.level != logging.INFO:  # setting it empties every logger's cache
            root.setLevel(logging.INFO)

    def _restore_signals(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        for number, handler in self._signals.items():
            if _handler_of(number) != handler:
                signal.signal(number, handler)


def _open_stream(number: int) -> TextIO:
    return os.fdopen(number, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)


class _LogHandler(logging.StreamHandler[TextIO]):
    """Log records to the attempt's output."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.setFormatter(log_form())
