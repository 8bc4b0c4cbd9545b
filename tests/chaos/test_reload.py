"""The jobs file is edited under living replicas: an edit is taken whole or not at all, and nothing is done anew."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pooler import direct
from replicas import Fleet, Replica, eventually, jobs_file

from scheduler.runner.reloader import HALF


class File:
    """A jobs file that a person edits."""

    def __init__(self, folder: Path, effects: Path) -> None:
        folder.mkdir()
        self.path, self._effects = folder / "jobs.yaml", effects

    def job(self, **fields: Any) -> dict[str, Any]:
        entry = {
            "call": "effects:append",
            "every": "500ms",
            "isolation": "thread",
            "args": {"path": str(self._effects)},
        }
        return {key: value for key, value in (entry | fields).items() if value is not None}

    def write(self, text: str) -> None:
        self.path.write_text(text)

    def replace(self, text: str) -> None:
        """As editors do: a new file takes the old one's name."""
        beside = self.path.with_suffix(".swp")
        beside.write_text(text)
        beside.rename(self.path)


@pytest.fixture
def file(fleet: Fleet, tmp_path: Path) -> File:
    return File(tmp_path / "config", fleet.effects)


def _start(fleet: Fleet, file: File, text: str) -> Replica:
    file.write(text)
    return fleet.start("", file=file.path).ready()


def _heard(replica: Replica, kind: str, **facts: Any) -> dict[str, Any]:
    return eventually(lambda: replica.events(kind, **facts), f"{replica.name}: {kind} {facts}")[-1]


def _spec(fleet: Fleet, job: str) -> dict[str, Any]:
    return dict(fleet.sql("SELECT spec FROM soloist.job WHERE name = %s", job)[0][0])


def test_an_edit_is_taken_and_said_job_by_job(fleet: Fleet, file: File) -> None:
    replica = _start(fleet, file, jobs_file(stays=file.job(), changes=file.job(), goes=file.job()))
    eventually(lambda: len(fleet.lines()) > 6, "they tick")
    file.write(jobs_file(stays=file.job(), changes=file.job(every="700ms", timeout="1m"), comes=file.job()))
    said = _heard(replica, "PlanReloaded")
    assert (said["in_force"], said["differing"], said["file"]) == (True, 3, "jobs.yaml")
    eventually(lambda: len(replica.events("JobEdited")) == 3, "each job's change is said")
    edits = {event["job"]: event for event in replica.events("JobEdited")}
    assert {job: event["change"] for job, event in edits.items()} == {
        "changes": "changed",
        "comes": "added",
        "goes": "removed",
    }
    assert edits["changes"]["what"] == ["every: 500ms → 700ms", "timeout: none → 1m"]
    assert edits["comes"]["next_tick"] is not None
    assert "comes" in {line[0] for line in eventually(lambda: fleet.lines("comes"), "the new one runs")}
    known = dict(fleet.sql("SELECT name, removed_at IS NOT NULL FROM soloist.job"))
    assert known == {"stays": False, "changes": False, "goes": True, "comes": False}
    gone = len(fleet.lines("goes"))
    eventually(lambda: len(fleet.lines("comes")) > 3, "time goes by")
    assert len(fleet.lines("goes")) == gone


def test_a_shorter_retention_is_said(fleet: Fleet, file: File) -> None:
    """It belongs to no job, and deletes history."""

    def text(skipped: str) -> str:
        return json.dumps(json.loads(jobs_file(a=file.job())) | {"retention": {"skipped": skipped, "failed": "9d"}})

    replica = _start(fleet, file, text("7d"))
    for skipped, said in (("1d", "7d → 1d, and what is older goes with the next purge"), ("2d", "1d → 2d")):
        file.write(text(skipped))
        what = [f"retention.skipped: {said}"]
        eventually(lambda w=what: [e for e in replica.events("PlanReloaded") if e["what"] == w], f"it says {what}")
        assert replica.events("PlanReloaded")[-1]["differing"] == 0


@pytest.mark.case("C075")
def test_three_swaps_of_a_config_map_are_all_seen(fleet: Fleet, file: File) -> None:
    folder = file.path.parent

    def swap(number: int) -> None:
        version = folder / f"..{number}"
        version.mkdir()
        (version / "jobs.yaml").write_text(jobs_file(**{f"job_{number}": file.job()}))
        (folder / "..data_tmp").symlink_to(version.name)
        (folder / "..data_tmp").rename(folder / "..data")

    swap(0)
    file.path.symlink_to("..data/jobs.yaml")
    replica = fleet.start("", file=file.path).ready()
    for number in (1, 2, 3):
        swap(number)
        _heard(replica, "JobEdited", job=f"job-{number}", change="added")
        eventually(lambda n=number: fleet.lines(f"job-{n}"), "it ticks")


def _in_place(file: File, text: str) -> None:
    with file.path.open("r+") as opened:
        opened.write(text)
        opened.truncate()


@pytest.mark.parametrize("how", [File.write, File.replace, _in_place], ids=["truncate", "rename", "in place"])
def test_whatever_way_an_editor_saves_it_is_seen_again_and_again(
    fleet: Fleet, file: File, how: Callable[[File, str], None]
) -> None:
    replica = _start(fleet, file, jobs_file(a=file.job()))
    for number in range(3):
        how(file, jobs_file(a=file.job(timeout=f"{number + 1}m")))
        eventually(lambda n=number: _spec(fleet, "a")["timeout"] == 60.0 * (n + 1), "it is in force")
        eventually(lambda n=number: len(replica.events("PlanReloaded")) == n + 1, "it is said, once")


@pytest.mark.case("C076")
def test_a_bad_edit_keeps_the_old_plan_and_shows(fleet: Fleet, file: File) -> None:
    good = jobs_file(a=file.job())
    replica = _start(fleet, file, good)
    other = fleet.start("", file=file.path).ready()
    file.write("version: 1\njobs:\n  a: [\n")
    refused = _heard(replica, "PlanRefused")
    assert "jobs.yaml:" in refused["problems"][0]
    _heard(other, "PlanRefused")
    before = len(fleet.lines())
    eventually(lambda: len(fleet.lines()) > before + 3, "it ticks on")
    shown = "SELECT count(*) FROM soloist.replica WHERE file_problem LIKE 'jobs.yaml:%%'"
    eventually(lambda: fleet.sql(shown) == [(2,)], "both say so in the database")
    file.write(jobs_file(a=file.job(), b=file.job(timeuot="1m"), c=file.job(every="5")))
    problems = eventually(lambda: len(replica.events("PlanRefused")) == 2 and replica.events("PlanRefused")[1], "again")
    assert [p.split(": ")[1] for p in problems["problems"]] == ["jobs.b.timeuot", "jobs.c.every"], "all of them at once"
    assert fleet.sql("SELECT name FROM soloist.job") == [("a",)], "nothing of it was taken"
    file.write(jobs_file(a=file.job(), b=file.job()))
    _heard(replica, "JobEdited", job="b", change="added")
    eventually(lambda: fleet.sql(shown) == [(0,)], "nothing is wrong any more")


def test_back_to_what_is_in_force_after_a_bad_edit(fleet: Fleet, file: File) -> None:
    good = jobs_file(a=file.job())
    replica = _start(fleet, file, good)
    file.write("nonsense")
    _heard(replica, "PlanRefused")
    file.write(good)
    _heard(replica, "PlanRestored")
    assert replica.events("PlanReloaded") == []
    assert fleet.sql("SELECT max(generation) FROM soloist.config") == [(1,)]


@pytest.mark.parametrize("left", [0, 0.6, None], ids=["emptied", "half written", "gone"])
def test_a_file_that_is_being_written_wipes_no_schedule(fleet: Fleet, file: File, left: float | None) -> None:
    """Half of a file may be a whole one with fewer jobs."""
    lines = ["version: 1", "jobs:"]
    for name in "abcdef":
        lines += [f"  {name}:", *(f"    {key}: {json.dumps(value)}" for key, value in file.job().items())]
    text = "\n".join(lines) + "\n"
    replica = _start(fleet, file, text)
    for number in range(5):
        begun, refused = time.monotonic(), len(replica.events("PlanRefused"))
        if left is None:
            file.path.unlink()
        else:
            cut = text.index("  e:") if left else 0
            file.write(text[:cut])
        before = len(fleet.lines())
        eventually(lambda seen=before: len(fleet.lines()) > seen + 3, "they tick on while it is written")
        file.write(text + f"  # and {number} words more\n")
        in_time = time.monotonic() - begun < HALF * 0.8
        wanted = hashlib.sha256(file.path.read_bytes()).hexdigest()[:16]
        said = _heard(replica, "PlanReloaded", config_hash=wanted)
        if in_time:  # else the machine stood still, and half of a file was rightly taken for a whole one
            assert said["differing"] == 0
            assert len(replica.events("PlanRefused")) == refused
            return
    pytest.fail("this machine is too slow to write a file")


def test_what_stays_emptied_is_refused_and_the_plan_goes_on(fleet: Fleet, file: File) -> None:
    replica = _start(fleet, file, jobs_file(a=file.job()))
    file.write("")
    _heard(replica, "PlanRefused")
    file.path.unlink()
    eventually(lambda: len(replica.events("PlanRefused")) == 2, "also when it is gone")
    before = len(fleet.lines())
    eventually(lambda: len(fleet.lines()) > before + 3, "it ticks on")
    file.write(jobs_file(b=file.job()))
    _heard(replica, "JobEdited", job="b")


def test_a_run_in_flight_keeps_its_spec(fleet: Fleet, file: File) -> None:
    hold = {"path": str(fleet.effects), "gate": str(fleet.gate)}
    job = file.job(call="effects:hold", args=hold, isolation=None)
    replica = _start(fleet, file, jobs_file(a=job))
    eventually(lambda: fleet.lines("begin"), "it runs")
    other = str(fleet.effects) + ".other"
    file.write(jobs_file(a=job | {"args": hold | {"path": other}, "timeout": "1s"}))
    _heard(replica, "PlanReloaded")
    first = fleet.sql("SELECT id FROM soloist.run ORDER BY scheduled_at LIMIT 1")[0][0]
    before = len(fleet.lines())
    eventually(lambda: len(fleet.lines()) > before + 100, "it goes on, longer than the new spec would let it")
    assert len(replica.events("AttemptStarted")) == 1, "nothing was started again"
    fleet.gate.touch()
    eventually(lambda: fleet.sql("SELECT status FROM soloist.run WHERE id = %s", first) == [("succeeded",)], "it ends")
    eventually(lambda: Path(other).exists(), "the next one has the new arguments")


@pytest.mark.case("C073")
def test_a_changed_schedule_never_fires_for_the_past(fleet: Fleet, file: File) -> None:
    """On Thursday night the time moves to what has been on every Friday before: nothing was missed."""
    now = datetime.now(UTC)
    later, earlier = now + timedelta(hours=3), now - timedelta(minutes=7)
    misfire = {"policy": "latest", "within": "7d", "first_sight": "run"}
    weekly = file.job(every=None, schedule=f"{later:%M %H} * * {later:%w}", misfire=misfire | {"first_sight": "wait"})
    replica = _start(fleet, file, jobs_file(a=weekly, pulse=file.job()))
    file.write(
        jobs_file(a=weekly | {"schedule": f"{earlier:%M %H} * * {earlier:%w}", "misfire": misfire}, pulse=file.job())
    )
    said = _heard(replica, "JobEdited", job="a")
    assert datetime.fromisoformat(said["next_tick"]) > now + timedelta(days=6)
    before = len(fleet.lines("pulse"))
    eventually(lambda: len(fleet.lines("pulse")) > before + 4, "time goes by")
    assert fleet.statuses("a") == []


def test_a_hang_up_signal_reads_the_file_at_once(fleet: Fleet, file: File) -> None:
    """Also when it is as it was: what it names may be there by now."""
    text = jobs_file(a=file.job(), b=file.job(call="not_there_yet:body"))
    replica = _start(fleet, file, jobs_file(a=file.job()))
    file.write(text)
    _heard(replica, "PlanRefused")
    replica.signal(signal.SIGHUP)
    eventually(lambda: len(replica.events("PlanRefused")) == 2, "it was looked at again")
    module = Path(__file__).parent.parent / "bodies" / "not_there_yet.py"
    try:
        module.write_text("def body(ctx, path):\n    pass\n")
        replica.signal(signal.SIGHUP)
        _heard(replica, "JobEdited", job="b", change="added")
    finally:
        module.unlink()
    assert replica.exit_code is None


def test_an_edit_back_makes_the_old_content_the_newest_for_all(fleet: Fleet, file: File) -> None:
    one, two = jobs_file(a=file.job()), jobs_file(a=file.job(timeout="1m"), b=file.job())
    replicas = [_start(fleet, file, one), fleet.start("", file=file.path).ready()]
    for count, text in enumerate((two, one, two, one), 1):
        file.write(text)
        for replica in replicas:
            eventually(lambda r=replica, n=count: len(r.events("PlanReloaded")) == n, f"{replica.name}: edit {count}")
        generations = {replica.events("PlanReloaded")[-1]["generation"] for replica in replicas}
        assert generations == {count + 1}, "one edit, one generation, whoever was first"
        assert all(replica.events("PlanReloaded")[-1]["in_force"] for replica in replicas)
    assert dict(fleet.sql("SELECT name, removed_at IS NOT NULL FROM soloist.job")) == {"a": False, "b": True}
    late = fleet.start(two, "late").ready()  # a pod that merely starts with the content that was edited away
    before = len(fleet.lines("a"))
    eventually(lambda: len(fleet.lines("a")) > before + 3, "the plan in force goes on")
    assert fleet.lines("b") == [] or late.events("TickWon", job="b") == []


@pytest.mark.case("C080")
def test_a_file_that_is_rewritten_all_the_time_costs_no_tick(fleet: Fleet, file: File) -> None:
    hold = file.job(call="effects:hold", args={"path": str(fleet.folder / "held"), "gate": str(fleet.gate)})
    text = jobs_file(a=file.job(overlap="allow"), long=hold | {"isolation": "process"})
    replica = _start(fleet, file, text)
    eventually(lambda: fleet.lines("a"), "it ticks")
    for number in range(12):
        file.replace(f"{text} # {number}")
        before = len(fleet.lines("a"))
        eventually(lambda n=before: len(fleet.lines("a")) > n + 1, "ticks between two edits")
    eventually(lambda: len(replica.events("PlanReloaded")) >= 2, "edits were taken")
    rows = fleet.sql(
        "SELECT run.scheduled_at, run.id FROM soloist.run JOIN soloist.job ON job.id = run.job WHERE name = 'a'"
        " ORDER BY 1"
    )
    ticks = [at for at, _ in rows]
    assert ticks == [ticks[0] + n * timedelta(seconds=0.5) for n in range(len(ticks))], "none was lost"
    ended = "SELECT DISTINCT status FROM soloist.run WHERE id = ANY(%s)"
    eventually(lambda: fleet.sql(ended, [id_ for _, id_ in rows]) == [("succeeded",)], "each of them succeeds")
    assert len(replica.events("AttemptStarted", job="long")) == 1, "what runs is left alone"
    assert os.path.exists(fleet.folder / "held")


def test_a_busy_folder_is_no_edit_and_fills_no_log(fleet: Fleet, file: File) -> None:
    """The log may be written beside the file: a line for each change of the folder would make the next one."""
    replica = _start(fleet, file, jobs_file(a=file.job()))
    for number in range(30):
        (file.path.parent / "some.log").write_text(str(number))
        before = len(fleet.lines()) - (number % 5 > 0)  # each fifth waits for a tick
        eventually(lambda n=before: len(fleet.lines()) > n, "time goes by")
    assert "change detected" not in replica.said()
    assert "watchfiles" not in replica.said()
    assert replica.events("PlanReloaded") == []
    file.write(jobs_file(a=file.job(timeout="1m")))
    _heard(replica, "PlanReloaded")


def test_an_edit_that_the_database_does_not_take_just_now_is_told_and_tried_again(fleet: Fleet, file: File) -> None:
    replica = _start(fleet, file, jobs_file(a=file.job()))
    eventually(lambda: len(fleet.lines()) > 2, "it ticks")
    problem = "SELECT file_problem FROM soloist.replica"
    with psycopg.connect(direct(fleet.url)) as stranger:
        stranger.execute("LOCK TABLE soloist.config IN EXCLUSIVE MODE")
        file.write(jobs_file(a=file.job(timeout="1m")))
        _heard(replica, "PlanDelayed", file="jobs.yaml")
        eventually(lambda: "in order, but" in (fleet.sql(problem)[0][0] or ""), "`replicas` has it")
        ticked = len(fleet.lines())
        eventually(lambda: len(fleet.lines()) > ticked + 2, "the former plan goes on")
        assert not replica.events("PlanReloaded")
    _heard(replica, "PlanReloaded", in_force=True)
    eventually(lambda: fleet.sql(problem) == [(None,)], "and that is over")
    assert len(replica.events("PlanDelayed")) == 1, "told once, however often it was tried"
    assert _spec(fleet, "a")["timeout"] == 60
