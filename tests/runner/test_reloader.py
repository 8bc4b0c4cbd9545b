"""When a content of the jobs file is taken: after it stood still, and half of a file not at all."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from replicas import HERE, jobs_file

from scheduler.config.jobs_file import parse
from scheduler.core.events import Bus, Event, PlanUnread
from scheduler.runner.reloader import BRIEF, HALF, RESTLESS, SLOW, STILL, Reloader, Source
from scheduler.runner.room import Room
from scheduler.store.claims import Owner


class Desk:
    """A reloader, its file, and the time, which the test moves on."""

    def __init__(self, folder: Path) -> None:
        self.now, self.stall, self.path = 0.0, 0.0, folder / "jobs.yaml"
        job = {"call": "effects:append", "every": "5m", "args": {"path": "x"}}
        self.text = jobs_file(a=job, b=job) + "\n# the end\n"
        self.path.write_text(self.text)
        plan = parse(self.text.encode(), "jobs.yaml", HERE / "bodies")
        clock: Any = SimpleNamespace(boottime=self._read_clock)
        owner: Any = Owner(None, "r", 15.0)  # type: ignore[arg-type]
        self.events: list[Event] = []
        bus = Bus()
        bus.subscribe(self.events.append)
        self.reloader = Reloader(Source(self.path, plan.root, "jobs.yaml"), plan, Room(owner, clock, bus))

    def _read_clock(self) -> float:
        """The machine stands still for `stall` just after the next reading."""
        now, self.now, self.stall = self.now, self.now + self.stall, 0.0
        return now

    def look(self, text: str | None = None, after: float = 0.0) -> bool:
        """Write, wait, look: whether an edit was taken."""
        if text is not None:
            self.path.write_text(text)
        self.now += after
        return self.reloader.look()[0] is not None


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_content_is_taken_once_it_stood_still(desk: Desk) -> None:
    assert not desk.look()
    assert not desk.look(desk.text + "# more\n")
    assert not desk.look(after=STILL * 0.9)
    assert desk.look(after=STILL * 0.2)
    assert not desk.look(after=10.0), "once"


def test_each_change_begins_the_stillness_anew(desk: Desk) -> None:
    for number in range(5):
        assert not desk.look(desk.text + f"# {number}\n", after=STILL * 0.9)
    assert desk.look(after=STILL)


def test_a_file_that_is_written_all_the_time_is_taken_at_a_brief_stillness(desk: Desk) -> None:
    number = 0
    while desk.now < RESTLESS + 1:
        number += 1
        assert not desk.look(desk.text + f"# {number}\n", after=0.2), "nobody knows whether it is whole"
    assert desk.look(after=BRIEF * 1.1)


@pytest.mark.parametrize("restless", [False, True])
def test_what_may_be_half_of_it_waits_for_longer(desk: Desk, restless: bool) -> None:
    while restless and desk.now < RESTLESS + 1:
        assert not desk.look(desk.text + f"# {desk.now}\n", after=0.2)
    half = desk.text[: desk.text.index("\n") + 1]
    assert not desk.look(half)
    assert not desk.look(after=HALF * 0.9)
    assert desk.look(after=HALF * 0.2), "somebody may have taken the end out on purpose"


def test_a_look_that_comes_late_is_not_believed_once(desk: Desk) -> None:
    """Who writes the file may have stood still as well; and a thread that is late each time must not wait for ever."""
    assert not desk.look(desk.text[: desk.text.index("\n") + 1])
    assert not desk.look(after=HALF * 4)
    assert not desk.look(after=STILL * 0.9)
    assert desk.look(after=HALF * 4)


def test_a_machine_that_stands_still_has_not_seen_the_content_stand_still(desk: Desk) -> None:
    half, desk.stall = desk.text[: desk.text.index("\n") + 1], HALF * 2
    assert not desk.look(half)
    assert not desk.look(after=HALF * 0.9)
    assert desk.look(after=HALF * 0.2)


def test_asked_for_it_is_looked_at_as_it_stands(desk: Desk) -> None:
    desk.path.write_text(desk.text + "# more\n")
    desk.reloader.ask()
    assert desk.look()


def test_a_look_that_does_not_end_is_told_of_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whoever asks meanwhile; and it is no trouble any more when it has ended."""
    reloader, troubles = desk.reloader, []

    def hang() -> None:
        for _ in range(3):
            troubles.append(reloader.trouble())
            desk.now += SLOW * 0.7

    monkeypatch.setattr(reloader, "_read", hang)
    reloader._step()
    assert troubles[:2] == [None, None]
    assert "a look at it does not end" in str(troubles[2])
    assert reloader.trouble() is None
    (told,) = desk.events
    assert isinstance(told, PlanUnread)
    assert SLOW < told.after < SLOW * 2
