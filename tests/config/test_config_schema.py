"""The JSON Schema and the reader: what the schema refuses the reader refuses; where the reader alone does is listed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from config.test_config_effective import FULL
from config.test_config_entries import ENTRIES
from config.test_config_file import FULL as ANOTHER
from config.test_config_file import WHOLE
from config.test_config_fuzz import GOOD, KEYS, TREES
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.config.effective import effective_text
from scheduler.config.jobs_file import parse
from scheduler.config.schema import jobs_schema
from scheduler.config.starter import starter
from scheduler.config.yaml_reader import read_yaml
from scheduler.core.errors import ConfigInvalid

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed: make installs it")
ROOT = Path(__file__).parents[2]
SCHEMA = jobs_schema()
Job = Callable[[str], str]

# What a schema cannot know: the fields of a crontab line, a calendar, the list of zones, what is shortest.
THE_READER_ALONE = {
    "schedule: 0 3 * * 8",
    "schedule: 0 0 30 2 *",
    "schedule: 0 22-2 * * *",
    "schedule: h 3 * * *",
    "schedule: 00000005 3 * * *",
    "schedule: 00000065 3 * * *",
    "schedule: H/61 3 * * *",
    "schedule: 0 0 H(1-31) * *",
    "every: 50ms",
    "at: soon",
    "timezone: europe/berlin",
    "every: 1h\nanchor: noon",
    "every: 1h\ntimezone: Europe/London\nanchor: 2026-10-25T01:30",
    "every: 1h\nfrom: 2026-02-01\nuntil: 2026-01-31",
    "every: 1h\nfrom: 2026-02-30",
    "every: 1h\nfrom: next week",
    "every: 1h\nuntil: 9999-12-31",
    "every: 1h\nexcept: [2026-12-24, 02-30]",
    "every: 1h\ntimezone: Europe/London\nuntil: 2026-03-29T01:30",
}


def taken(value: Any) -> bool:
    return bool(jsonschema.Draft202012Validator(SCHEMA).is_valid(value))


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


FILES = [
    GOOD.decode(),
    FULL,
    ANOTHER,
    effective_text(parse(FULL.encode())),
    starter(with_function=True),
    starter(with_function=False),
    (ROOT / "jobs.yaml").read_text(encoding="utf-8"),
    "version: 1\njobs: {}\n",
]


@pytest.mark.parametrize("text", FILES)
def test_good_files_are_taken(text: str) -> None:
    assert parse(text.encode()) is not None
    assert taken(read_yaml(text.encode(), "f.yaml").value)


@pytest.mark.parametrize("line", [line for line, _ in ENTRIES])
def test_one_wrong_entry(line: str, job: Job) -> None:
    text = job(line).encode()
    with pytest.raises(ConfigInvalid):
        parse(text)
    assert taken(read_yaml(text, "f.yaml").value) is (line in THE_READER_ALONE)


@pytest.mark.parametrize("text", [text for text, _ in WHOLE])
def test_wrong_files(text: str) -> None:
    # 1.0 is a whole number to JSON Schema, and no zone is known to it
    assert taken(read_yaml(text.encode(), "f.yaml").value) is ("1.0" in text or "Mars" in text)


@pytest.mark.parametrize("name", ["Nightly", "nightly_report", "-a", "a-", "a.b", "", "x" * 53])
def test_names_that_are_no_dns_label(name: str) -> None:
    assert not taken({"version": 1, "jobs": {name: {"call": "m:f"}}})
    assert taken({"version": 1, "jobs": {"x" * 52: {"call": "m:f"}}})


TEXTS = st.sampled_from(
    ["15m", "1h30m", "0s", "1m1h", "5ms", "1.5s", "none", "m:f", "m.n:f.g", "m", "1:f", "UTC", "day", "skip", "allow",
     "all", "0 3 * * *", "@daily", "@Daily", " @daily ", "a b c d e f", "2026-11-29", "2026-11-29T03:00Z", "", "-"]
)  # fmt: skip
ENTRY = st.dictionaries(KEYS, TEXTS | st.integers(-1, 2000) | TREES, max_size=5)


@settings(max_examples=300, deadline=None)
@given(ENTRY | TREES)
def test_what_the_schema_refuses_the_reader_refuses(entry: Any) -> None:
    value = {"version": 1, "jobs": {"a": {"call": "m:f"} | entry if isinstance(entry, dict) else entry}}
    if not taken(value):
        with pytest.raises(ConfigInvalid):
            parse(json.dumps(value).encode())
