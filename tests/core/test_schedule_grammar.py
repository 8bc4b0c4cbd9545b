"""What is refused, and that the message says which field and what to write instead."""

from __future__ import annotations

import pytest

from scheduler.core.schedule import Cron, ScheduleError, parse_cron

REFUSED = [
    ("", "empty"),
    (" \t ", "empty"),
    ("* * * *", "expected 5 fields (minute hour day month weekday), got 4"),
    ("0 0 3 * * *", "expected 5 fields (minute hour day month weekday), got 6; there is no field for seconds"),
    ("* * * * * *", "`every:`"),
    ("0 3 * * * 2027", "got 6"),
    ("0 0 3 * * ? 2027", "got 7"),
    ("60 * * * *", "minute '60': 60 is not in 0-59"),
    ("* 24 * * *", "hour '24': 24 is not in 0-23"),
    ("* * 0 * *", "day of month '0': 0 is not in 1-31"),
    ("* * * 13 *", "month '13': 13 is not in 1-12"),
    ("* * * * 8", "day of week '8': 8 is not in 0-7"),
    ("5-64/30 * * * *", "64 is not in 0-59"),
    ("*/0 * * * *", "a step of 0"),
    ("5/15 * * * *", "a step needs a range: 5-59/15 or */15"),
    ("0 6 1/5 * *", "1-31/5 or */5"),
    ("/5 * * * *", "a step needs a range: */5"),
    ("10-5 * * * *", "minute '10-5': the range 10-5 runs backwards and does not wrap; write 10-59,0-5"),
    ("0 22-2 * * *", "hour '22-2': the range 22-2 runs backwards and does not wrap; write 22,23,0,1,2"),
    ("0 8 * * FRI-MON", "write FRI,SAT,SUN,MON"),
    ("0 8 * * fri-sun", "write FRI,SAT,SUN"),
    ("0 8 * * 6-1", "write 6,0,1"),
    ("0 0 * nov-feb *", "write NOV,DEC,JAN,FEB"),
    ("0 20-4/4 * * *", "write 20,0,4"),
    ("59-0 * * * *", "write 59,0"),
    ("5, * * * *", "empty item"),
    (", * * * *", "empty item"),
    ("5,,6 * * * *", "empty item"),
    ("0 0 * january *", 'did you mean "jan"?'),
    ("0 0 * * mo", "names are sun, mon"),
    ("mon * * * *", "'mon' is not a number"),
    ("0 0 ? * *", "write `*`"),
    ("0 0 L * *", "not in crontab"),
    ("0 0 * * 5#2", "not in crontab"),
    ("0 0 15W * *", "not in crontab"),
    ("5-* * * * *", "not a number, a range"),
    ("+5 * * * *", "not a number, a range"),
    ("１ * * * *", "U+FF11"),
    ("0 3 * * *\u00a0", "U+00A0"),
    ("0 3 * *\x0b*", "U+000B"),
    ("9" * 500 + " * * * *", "is not in 0-59"),
    ("0," * 5000 + "0 * * * *", "the expression has 10009 characters"),
    ("*/99999 * * * *", "not a number, a range"),
    ("0 0 30 2 *", "never fires: no month '2' has a day 30"),
    ("0 0 31 4,6,9,11 *", "never fires"),
    ("0 0 31 feb,apr *", "never fires"),
    ("0 0 30-31 2 */2", "never fires"),
    ("@reboot", "no meaning among replicas"),
    ("@every 5m", "every: 5m"),
    ("@DAILY", "lower case, @daily"),
    ("@dayly", 'did you mean "@daily"?'),
    ("@daily 5", "not known"),
    ("CRON_TZ=Europe/Berlin 0 3 * * *", "`timezone:`"),
    ("TZ=UTC 0 3 * * *", "`timezone:`"),
]


@pytest.mark.parametrize(("line", "said"), REFUSED)
def test_refused_with_help(line: str, said: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        parse_cron(line, "UTC")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("macro", "fields"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
    ],
)
def test_macros_are_their_fields(macro: str, fields: str) -> None:
    assert parse_cron(macro, "UTC") == Cron(fields, "UTC")


@pytest.mark.parametrize(
    "line", ["0 0 29 2 *", "0 0 31 2 1", "0 0 30 2 0-6", "0 0 1 * */1", "*,5 * * * *", "*/100 * * * *"]
)
def test_odd_but_possible(line: str) -> None:
    assert parse_cron(line, "UTC").expression == line


def test_blanks_and_a_final_newline_do_not_matter() -> None:
    assert parse_cron("  0\t3  * * *\r\n", "UTC") == Cron("0 3 * * *", "UTC")


def test_a_step_on_a_one_value_range_stays_in_the_range() -> None:
    # cronsim alone would read 5-5/2 as 5-59/2.
    assert parse_cron("5-5/2 * * * *", "UTC").expression == "5-5/2 * * * *"


def test_an_unknown_zone_is_refused_where_the_schedule_is_made() -> None:
    with pytest.raises(ScheduleError, match="Europe/Berlin"):
        parse_cron("0 3 * * *", "Europe/Berlln")
