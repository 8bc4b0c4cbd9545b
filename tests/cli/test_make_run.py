"""`make run` on a terminal: its signals are the server's alone, and the terminal comes back."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest
from desk import REPO, Desk, asked, end_tree
from replicas import eventually
from scene import Scene

# A script on a terminal, which goes on after `make run` and looks whether it still has the terminal.
SCRIPT = f"""
make run
echo "code $?"
{sys.executable} -c "import os; print('in front:', os.tcgetpgrp(0) == os.getpgrp())"
"""
ON_A_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""


class Terminal:
    """A terminal with that script in it; what is written there is gathered by a thread."""

    def __init__(self, desk: Desk) -> None:
        self._leader, follower = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", ON_A_TERMINAL, "sh", "-c", SCRIPT],
            cwd=desk.folder,
            env=desk.environment(),
            stdin=follower,
            stdout=follower,
            stderr=follower,
            start_new_session=True,
        )
        os.close(follower)
        self._said = b""
        self._thread = threading.Thread(target=self._gather, daemon=True)
        self._thread.start()

    def _gather(self) -> None:
        with suppress(OSError):  # the last one has closed the terminal, or we have
            while piece := os.read(self._leader, 65536):
                self._said += piece

    @property
    def text(self) -> str:
        return self._said.decode(errors="replace").replace("\r\n", "\n")

    def press(self, key: bytes) -> None:
        os.write(self._leader, key)

    def hang_up(self) -> None:
        """Somebody closes the window."""
        os.close(self._leader)
        self._leader = -1

    def wait(self) -> str:
        """Until the script has ended; returns what it said."""
        self.process.wait(60)
        self._thread.join(60)
        return self.text

    def close(self) -> None:
        end_tree(self.process.pid)
        self.process.wait()
        self._thread.join(60)
        if self._leader >= 0:
            os.close(self._leader)


@pytest.fixture
def terminal(desk: Desk, scene: Scene) -> Iterator[Terminal]:
    """`make run` with two replicas that run."""
    desk.write(pulse={"every": "1s", "call": "work:quick"})
    makefile = (REPO / "Makefile").read_text()
    recipe = f'run:\n\t@exec {sys.executable} -c "$$IN_FRONT" {sys.executable} -m scheduler serve --replicas 2\n\n'
    (desk.folder / "Makefile").write_text(recipe + makefile[makefile.index("define IN_FRONT") :])
    opened = Terminal(desk)
    try:
        eventually(lambda: opened.text.count("started: soloist") == 2, "both run")
        yield opened
    finally:
        opened.close()


def test_ctrl_c_ends_it_in_good_order(terminal: Terminal) -> None:
    """Make does not die of it and says nothing ugly, and the script has the terminal again."""
    terminal.press(b"\x03")
    said = terminal.wait()
    assert "code 0\n" in said
    assert "in front: True\n" in said
    assert "***" not in said


def test_ctrl_z_stops_nothing(terminal: Terminal, scene: Scene) -> None:
    """Nobody could wake it up again: the shell knows of make's group, and not of the server's."""
    terminal.press(b"\x1a")
    eventually(lambda: "^Z" in terminal.text, "the key has arrived")
    before = len(scene.rows())
    eventually(lambda: len(scene.rows()) > before + 1, "it ticks on")
    family = psutil.Process(terminal.process.pid).children(recursive=True)
    assert psutil.STATUS_STOPPED not in asked(family, psutil.Process.status).values()
    terminal.press(b"\x03")
    said = terminal.wait()
    assert "code 0\n" in said
    assert "in front: True\n" in said


def in_front(terminal: Terminal) -> psutil.Process:
    """The process between make and the server."""
    family = psutil.Process(terminal.process.pid).children(recursive=True)
    (found,) = [
        child
        for child, words in asked(family, psutil.Process.cmdline).items()
        if any("tcsetpgrp" in word for word in words) and "make" not in words[0]
    ]
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_what_stands_between_is_passed_on(terminal: Terminal, number: int) -> None:
    in_front(terminal).send_signal(number)
    said = terminal.wait()
    assert said.count("stopped") >= 2, "the replicas ended in good order"
    assert "code 0\n" in said
    assert "in front: True\n" in said


def test_an_ugly_end_is_not_hidden(terminal: Terminal) -> None:
    (server,) = in_front(terminal).children()
    server.kill()
    said = terminal.wait()
    assert "Error 137" in said
    assert "in front: True\n" in said


def test_a_terminal_that_goes_away_takes_the_replicas_with_it(terminal: Terminal) -> None:
    """Its SIGHUP is no wish to read the file again."""
    server = in_front(terminal).children()[0]
    replicas = server.children()
    terminal.hang_up()
    gone, alive = psutil.wait_procs([server, *replicas], timeout=60)
    assert (len(gone), alive) == (1 + len(replicas), [])


def test_a_hang_up_signal_reads_the_file_again_in_every_replica(terminal: Terminal, desk: Desk) -> None:
    desk.write(pulse={"every": "1s", "call": "work:quick"}, broken={"every": "1s", "call": "nowhere:body"})
    eventually(lambda: terminal.text.count("is not taken") == 2, "both have looked by themselves")
    in_front(terminal).send_signal(signal.SIGHUP)
    eventually(lambda: terminal.text.count("is not taken") == 4, "both have looked again")
    terminal.press(b"\x03")
    assert "code 0\n" in terminal.wait()
