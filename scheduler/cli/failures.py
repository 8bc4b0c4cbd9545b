"""The one place where an error becomes a message on stderr and an exit code."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from scheduler.core.errors import ConfigInvalid, SoloistError

INTERRUPTED = 130
BROKEN_PIPE = 141
OUR_FAULT = 70  # EX_SOFTWARE of sysexits.h


def run() -> int:
    """Run the command line of `sys.argv`; returns the exit code. Lets only what SOLOIST_DEBUG=1 asks for through."""
    from scheduler.cli.main import app

    for stream in (sys.stdout, sys.stderr):  # a name with an odd character must not end a command
        with suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        app(prog_name="soloist")
        return 0
    except SystemExit as end:
        return _ended(end)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _reader_gone()
    except SoloistError as error:
        complain(error)
        return error.exit_code
    except Exception as error:
        if os.environ.get("SOLOIST_DEBUG"):
            raise
        text = " ".join(str(error).split())[:300]
        say(f"a fault of Soloist itself, {type(error).__name__}: {text}\nSOLOIST_DEBUG=1 shows where; please report it")
        return OUR_FAULT


def complain(error: SoloistError) -> None:
    """Print the error; each problem of a configuration on a line that begins with its place, as compilers do."""
    if isinstance(error, ConfigInvalid):
        with suppress(BrokenPipeError):
            for problem in error.problems:
                print(problem, file=sys.stderr)
            count = len(error.problems)
            say(f"{count} problem{'' if count == 1 else 's'}; nothing was started")
    else:
        say(str(error))


def say(message: str) -> None:
    """A message for the person, on stderr."""
    with suppress(BrokenPipeError):
        print(f"soloist: {message}", file=sys.stderr, flush=True)


def _ended(end: SystemExit) -> int:
    if isinstance(end.__context__, BrokenPipeError):  # typer makes exit code 1 of it, which is a failed job's
        return _reader_gone()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _reader_gone()
    return end.code if isinstance(end.code, int) else int(end.code is not None)


def _reader_gone() -> int:
    """`soloist … | head`: what is still buffered goes nowhere, or the interpreter would complain at its end."""
    assert sys.__stdout__ is not None
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())
    return BROKEN_PIPE
