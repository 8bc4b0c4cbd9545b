"""A deploy moves a job's time or zone: each tick belongs to the file that was in force when it came."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from chaos.rollout import Switch, attempts, goes_on, in_seconds, midday_zone, passes, tick
from replicas import Fleet, eventually, jobs_file

DAILY = {"once_per": "day"}


def _ran(fleet: Fleet, job: str) -> list[tuple[datetime, str]]:
    """(tick, word of its body) of the job's runs that succeeded; there may be no other rows."""
    rows = fleet.sql(
        "SELECT run_key, scheduled_at, status FROM soloist.run JOIN soloist.job ON job.id = run.job WHERE name = %s"
        " ORDER BY scheduled_at",
        job,
    )
    assert {status for *_, status in rows} <= {"succeeded"}, rows
    words = {key: word for key, *_, word in attempts(fleet, job)}
    return [(at.astimezone(UTC), words[key]) for key, at, _ in rows]


class Deploy:
    """Each job before and after, two replicas of the old file, one of the new; and what became of the jobs."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.before = {"pulse": tick(fleet, "pulse")}
        self.after = dict(self.before)

    def move(self, name: str, old: dict[str, Any], new: dict[str, Any], **both: Any) -> None:
        self.before[name] = tick(self.fleet, "old", **({"every": None} | both | old))
        self.after[name] = tick(self.fleet, "new", **({"every": None} | both | new))

    def start_old(self, early: datetime) -> None:
        """The ticks from `early` on are owed, however long a start takes."""
        self.fleet.apply(jobs_file(**self.before))
        self.fleet.sql("UPDATE soloist.job SET watermark = LEAST(watermark, %s)", early - timedelta(seconds=1))
        for name in ("old", "other"):
            self.fleet.start(jobs_file(**self.before), name).ready()

    def start_new(self) -> Switch:
        self.fleet.start(jobs_file(**self.after), "new").ready()
        return Switch.to(self.fleet, "new")

    def see(self, instant: datetime, by: str | None = None) -> None:
        """All that was to come by then has come (it is `by` who has to see to that), and has run."""
        passes(self.fleet, instant)
        goes_on(self.fleet, "pulse", by=by)
        open_ = "SELECT 1 FROM soloist.run WHERE finished_at IS NULL AND scheduled_at <= %s"
        eventually(lambda: not self.fleet.sql(open_, instant), "what has come has run")


def _moves(deploy: Deploy, early: datetime, late: datetime) -> None:
    """The old time has come already; it is still to come; the new one has passed by before it was there."""
    zone, never, past = midday_zone(), early + timedelta(hours=1), early - timedelta(minutes=1)
    for name, old, new in (
        ("ran", early, late),
        ("ahead", never, late),
        ("behind", early, past),
        ("back", never, past),
    ):
        times = {"every": "24h", "anchor": old.isoformat()}, {"every": "24h", "anchor": new.isoformat()}
        deploy.move(name, *times, timezone=zone)
        deploy.move(f"{name}_day", *times, timezone=zone, **DAILY)


def _moves_of_zones(deploy: Deploy, early: datetime, late: datetime) -> None:
    """A wall time stays as it is written, and its zone changes: it comes an hour later, or an hour sooner."""
    tokyo, shanghai = {"timezone": "Asia/Tokyo"}, {"timezone": "Asia/Shanghai"}
    for name, instant, old, new in (
        ("zone_ran", early, tokyo, shanghai),
        ("zone_ahead", late, shanghai, tokyo),
        ("zone_put_off", late, tokyo, shanghai),
    ):
        wall = {"at": instant.astimezone(ZoneInfo("Asia/Tokyo")).replace(tzinfo=None).isoformat()}
        deploy.move(name, wall | old, wall | new)


@pytest.mark.case("C073")
def test_a_job_that_is_moved_runs_once_a_day_or_once_a_tick(fleet: Fleet) -> None:
    deploy, early, late = Deploy(fleet), in_seconds(3), in_seconds(45)
    _moves(deploy, early, late)
    _moves_of_zones(deploy, early, late)
    deploy.start_old(early)
    deploy.see(early)
    assert deploy.start_new().end < late, "the machine is too slow for this scene"
    deploy.see(late, by="new")
    assert _ran(fleet, "ran-day") == [(early, "old")], "the day had its run"
    assert _ran(fleet, "ran") == [(early, "old"), (late, "new")]
    for name in ("behind", "behind-day"):
        assert _ran(fleet, name) == [(early, "old")], "a time that has passed by is not made up for"
    for name in ("ahead", "ahead-day"):
        assert _ran(fleet, name) == [(late, "new")]
    for name in ("back", "back-day"):
        assert _ran(fleet, name) == [], "a changed schedule owes nothing of the past, and the old time is none any more"
    assert _ran(fleet, "zone-ran") == [(early, "old")], "not once more when the other zone comes there"
    assert _ran(fleet, "zone-ahead") == [(late, "new")]
    assert _ran(fleet, "zone-put-off") == []


def _line(instant: datetime, zone: str) -> dict[str, str]:
    local = instant.astimezone(ZoneInfo(zone))
    return {"schedule": f"{local:%M %H} * * *", "timezone": zone}


@pytest.mark.full
@pytest.mark.timeout(600)
def test_crontab_lines_that_are_moved(fleet: Fleet) -> None:
    """From one minute to another, and to another zone; what both files have in each minute runs once in each."""
    deploy, zone = Deploy(fleet), midday_zone()
    first = (datetime.now(UTC) + timedelta(seconds=75)).replace(second=0, microsecond=0)
    second, hour = first + timedelta(minutes=2), timedelta(hours=1)
    for name, old, new in (("ran", first, second), ("ahead", second + hour, second), ("back", second + hour, first)):
        deploy.move(name, _line(old, zone), _line(new, zone))
        deploy.move(f"{name}_day", _line(old, zone), _line(new, zone), **DAILY)
    tokyo = {"timezone": "Asia/Tokyo"}
    deploy.move("zone_ran", _line(first, zone), _line(first, zone) | tokyo)
    deploy.move("zone_ahead", _line(second, "Asia/Tokyo") | {"timezone": zone}, _line(second, "Asia/Tokyo"))
    every = {"schedule": "* * * * *"}
    deploy.move("minutes", every | {"timezone": zone}, every | tokyo)
    deploy.start_old(first)
    deploy.see(first)
    switch = deploy.start_new()
    deploy.see(second, by="new")
    assert first < switch.begin < switch.end < second
    assert _ran(fleet, "ran-day") == [(first, "old")]
    assert _ran(fleet, "ran") == [(first, "old"), (second, "new")]
    assert _ran(fleet, "ahead") == _ran(fleet, "ahead-day") == [(second, "new")]
    assert _ran(fleet, "back") == _ran(fleet, "back-day") == []
    assert _ran(fleet, "zone-ran") == [(first, "old")]
    assert _ran(fleet, "zone-ahead") == [(second, "new")]
    minutes = [first + timedelta(minutes=n) for n in range(3)]
    ran = _ran(fleet, "minutes")
    assert [at for at, _ in ran if at >= first] == minutes, "each minute once, under whichever zone's name"
    assert all(
        word == ("old" if at < switch.begin else "new") for at, word in ran if not switch.begin <= at <= switch.end
    )
