"""Whatever the bytes are: a plan, or ConfigInvalid. Never another exception, and never a message of many lines."""

from __future__ import annotations

import codecs
import contextlib
import json
import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from scheduler.config.jobs_file import parse
from scheduler.config.models import FileSection, JobSection, MisfireSection, RetrySection
from scheduler.core.errors import ConfigInvalid

GOOD = b"""version: 1
timezone: Europe/London
defaults: {timeout: 10m, retry: {attempts: 3}}
jobs:
  a-job:
    schedule: "0 3 * * *"
    once_per: day
    call: jobs.registry:build
    args: {directory: var, day: 2026-11-29, token: {env: T}, list: [1, 2.5, null, {a: b}]}
    misfire: {policy: latest, within: 26h}
"""

SECTIONS = (FileSection, JobSection, RetrySection, MisfireSection)
KEYS = st.sampled_from(["a", "b-c", "env", "file", "password", *(key for one in SECTIONS for key in one.model_fields)])
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12)
    | st.sampled_from(["0 3 * * *", "15m", "day", "skip", "fail", "m:f", "2026-11-29T03:00", "UTC", "all", "none"])
)
TREES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6), max_leaves=30
)


def holds(text: bytes) -> None:
    try:
        plan = parse(text)
    except ConfigInvalid as error:
        problems = error.problems
    else:
        # What was taken can be stored and hashed.
        for job in plan.jobs:
            json.dumps(job.to_dict(), allow_nan=False).encode()
            assert len(job.hash) == 16
        return
    assert problems
    content = text.removeprefix(codecs.BOM_UTF8).decode("utf-8", errors="replace")
    lines = re.split(r"\r\n|\r|\n", content)
    for problem in problems:
        assert "\n" not in str(problem)
        assert 1 <= problem.line <= max(1, len(lines)), problem
        assert 1 <= problem.column <= max(map(len, lines)) + 2, problem


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
@example(b"\xff\xfe")
@example(b"\xef\xbb\xbf")
@example(b"%")
@example(b"? ")
@example(b"!<")
@example(b"a: |9\n")
@example(b"- &a [*a]")
def test_random_bytes(text: bytes) -> None:
    holds(text)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="abjo:-? \n\t[]{},#&*!|>'\"%@`~0.1<=_\\x\u00e9\u2028", max_size=80))
def test_random_yaml_punctuation(text: str) -> None:
    holds(text.encode())


@settings(max_examples=100, deadline=None)
@given(TREES)
def test_random_trees(tree: object) -> None:
    # JSON is YAML, so this reaches the models with every shape of value.
    holds(json.dumps({"version": 1, "jobs": {"a": tree}}).encode())
    holds(json.dumps(tree).encode())


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_good_file_with_damage(data: st.DataObject) -> None:
    text = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        if data.draw(st.booleans()):
            text[at] = data.draw(st.integers(0, 255))
        else:
            del text[at : at + data.draw(st.integers(1, 20))]
    holds(bytes(text))


LINES = GOOD.splitlines(keepends=True)
SCALARS = st.sampled_from(
    ["", "null", "true", "1", "-1", "1.5", "15m", "'x'", '"', "'", "*a", "&a 1", "!t 1", "[]", "{}", "[a", "{a: b",
     "|", ">-", "@daily", "a: b", "0 3 * * *", "* * * * *", "\u0663", "\uff10", "\u2013", "1:30", "010", "# x", "\t",
     "\u2028", "\x85", "9" * 400, "2026-11-29", "Europe/Berlin", "0x1F", ".nan", "~", "?", "-"]
).map(str.encode)  # fmt: skip
NAMES = KEYS.map(str.encode) | st.sampled_from(
    [b"<<", b"007", b"on", b"null", b"? a", b"a b", b"'a", b"[a]", b"{a}", b"", b"*a"]
)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_good_file_with_other_lines_scalars_and_keys(data: st.DataObject) -> None:
    """Damage that keeps the shape of a file, as people do it: a line less or twice, another value, another key."""
    lines = list(LINES)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1))
        key, colon, value = lines[at].partition(b":")
        match data.draw(st.sampled_from(["drop", "twice", "swap", "indent", "value", "key", "insert"])):
            case "drop" if len(lines) > 1:
                del lines[at]
            case "twice":
                lines.insert(data.draw(st.integers(0, len(lines))), lines[at])
            case "swap":
                other = data.draw(st.integers(0, len(lines) - 1))
                lines[at], lines[other] = lines[other], lines[at]
            case "indent":
                lines[at] = b" " * data.draw(st.integers(0, 6)) + lines[at].lstrip(b" ")
            case "value":
                lines[at] = key + colon + b" " + data.draw(SCALARS) + b"\n"
            case "key":
                indent = key[: len(key) - len(key.lstrip(b" "))]
                lines[at] = indent + data.draw(NAMES) + colon + value
            case "insert":
                lines.insert(at, b"    " + data.draw(NAMES) + b": " + data.draw(SCALARS) + b"\n")
    end = data.draw(st.sampled_from([b"\n", b"\r\n", b"\r"]))
    holds(b"".join(lines).replace(b"\n", end))


ENTRIES = st.dictionaries(KEYS, LEAVES | TREES, max_size=6).map(lambda entry: {"call": "m:f", **entry})


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(["a", "b-c", "B", ""]) | st.text(max_size=5), ENTRIES, max_size=4), ENTRIES)
def test_files_of_the_right_shape_and_wrong_values(jobs: dict[str, object], defaults: dict[str, object]) -> None:
    defaults.pop("call", None)
    holds(json.dumps({"version": 1, "defaults": defaults, "jobs": jobs}).encode())


def test_every_cut_of_a_good_file() -> None:
    # A half-written file is often valid YAML with fewer jobs; here it must at least never be a traceback.
    assert parse(GOOD).jobs
    for length in range(len(GOOD)):
        with contextlib.suppress(ConfigInvalid):
            parse(GOOD[:length])
