"""A signal stops a replica whichever thread the kernel gives it to."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import os, signal, threading
from scheduler.runner.signals import stop_on_signals

stopped, sleeps, times = threading.Event(), threading.Event(), []

def stop():
    times.append(1)
    if len(times) == {times}:
        stopped.set()

def asleep():
    with open(f"/proc/self/task/{{os.getpid()}}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "S"

def send():
    for _ in range({times}):
        while not (asleep() and not sleeps.wait(0.1) and asleep()):
            pass
        signal.pthread_kill(threading.get_ident(), signal.{number})

signal.signal(signal.SIGUSR1, lambda *_: None)
stop_on_signals(stop)
threading.Thread(target=send, daemon=True).start()
os.kill(os.getpid(), signal.SIGUSR1)  # another signal with a handler is not meant for us
assert not times
stopped.wait()
"""


@pytest.mark.parametrize(("number", "times"), [("SIGTERM", 1), ("SIGINT", 2)])
def test_a_signal_in_another_thread_is_obeyed_while_the_main_one_sleeps(number: str, times: int) -> None:
    script = SCRIPT.format(number=number, times=times)
    done = subprocess.run([sys.executable, "-c", script], timeout=60, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
