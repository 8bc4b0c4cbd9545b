"""The replica is killed or frozen: its bodies do not outlive what it may vouch for."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from trial import alive, pids_at, until

VICTIM = Path(__file__).with_name("victim_replica.py")


class Victim:
    def __init__(self, path: Path, call: str, trust: float, *rest: str) -> None:
        self.process = subprocess.Popen([sys.executable, str(VICTIM), call, str(path), str(trust), *rest])
        self.pids = pids_at(path)
        marker = Path(f"{path}.zygote")
        until(lambda: marker.exists() and marker.read_text(), "the replica names its zygote")
        self.zygote = int(marker.read_text())


@pytest.fixture
def victims() -> Iterator[list[Victim]]:
    started: list[Victim] = []
    yield started
    for victim in started:
        victim.process.kill()
        victim.process.wait()


@pytest.mark.case("C092")
@pytest.mark.parametrize("then", ["gil", "wait"])
def test_kill_9_takes_child_group_daemon_and_zygote(tmp_path: Path, victims: list[Victim], then: str) -> None:
    victim = Victim(tmp_path / "f", "family", 120.0, then)
    victims.append(victim)
    everybody = [*victim.pids, victim.zygote]
    assert all(alive(pid) for pid in everybody)
    start = time.monotonic()
    victim.process.kill()
    until(lambda: not any(alive(pid) for pid in everybody), "all are gone")
    assert time.monotonic() - start < 90, "long before any lease is over"


@pytest.mark.parametrize(("call", "rest"), [("family", ["gil"]), ("hold_gil_in_regex", []), ("ignore_term", [])])
def test_a_frozen_replica_s_bodies_end_at_the_trust_deadline(
    tmp_path: Path, victims: list[Victim], call: str, rest: list[str]
) -> None:
    trust = 6.0  # by then it has left its mark
    victim = Victim(tmp_path / "f", call, trust, *rest)
    victims.append(victim)
    start = time.monotonic()
    victim.process.send_signal(signal.SIGSTOP)
    until(lambda: not any(alive(pid) for pid in victim.pids), "all are gone")
    assert time.monotonic() - start < trust + 60
    assert alive(victim.zygote), "the replica may wake up"


def test_the_kernel_ends_a_body_when_replica_and_zygote_die_together(tmp_path: Path, victims: list[Victim]) -> None:
    victim = Victim(tmp_path / "f", "family", 120.0, "gil")
    victims.append(victim)
    child, near, far = victim.pids
    victim.process.send_signal(signal.SIGSTOP)
    subprocess.run(["kill", "-STOP", str(victim.zygote)], check=True)
    subprocess.run(["kill", "-KILL", str(victim.process.pid), str(victim.zygote)], check=True)
    until(lambda: not alive(child) and not alive(near), "child and group are gone")
    subprocess.run(["kill", "-KILL", str(far)], check=True)  # a daemon alone can outlive both of its keepers
