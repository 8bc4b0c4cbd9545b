"""Whatever the bytes are: a plan, or ConfigInvalid. Never another exception, and never a message of many lines."""

from __future__ import annotations

import contextlib
import json

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
    assert all("\n" not in str(problem) and problem.line >= 1 for problem in problems)


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


def test_every_cut_of_a_good_file() -> None:
    # A half-written file is often valid YAML with fewer jobs; here it must at least never be a traceback.
    assert parse(GOOD).jobs
    for length in range(len(GOOD)):
        with contextlib.suppress(ConfigInvalid):
            parse(GOOD[:length])
