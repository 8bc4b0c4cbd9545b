"""No input costs more than its size is worth: bombs, giants and heaps of mistakes end soon, with a clear line.

The limit is generous, for a busy machine; what is quadratic anywhere takes minutes and is caught all the same.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.config.jobs_file import MOST_PROBLEMS, load, parse
from scheduler.config.yaml_reader import LARGEST
from scheduler.core.errors import ConfigInvalid

HEAD = b"version: 1\njobs:\n  a:\n    call: m:f\n"
ROOM = LARGEST // 2
pytestmark = pytest.mark.timeout(90)


def laughs() -> bytes:
    lines = [b"a: &a [ha, ha, ha]\n"]
    lines += [b"%c: &%c [%s]\n" % (c, c, b", ".join([b"*%c" % (c - 1)] * 9)) for c in range(ord("b"), ord("z"))]
    return b"".join(lines)


REFUSED = {
    "billion laughs": (laughs(), "aliases are not allowed"),
    "brackets": (b"a: " + b"[" * 20_000, "nested deeper than 20 levels"),
    "brackets on lines": (b"a: " + b"[\n" * 20_000, "nested deeper than 20 levels"),
    "braces": (b"{a: " * 20_000, "nested deeper than 20 levels"),
    "indents": (b"".join(b" " * n + b"a:\n" for n in range(2000)), "nested deeper than 20 levels"),
    "a million keys": (b"".join(b"%x:\n" % n for n in range(1_000_000)), "the file has more than 500,000 entries"),
    "a million items": (b"a: [" + b"x," * 1_000_000 + b"x]", "the file has more than 500,000 entries"),
    "a long schedule": (HEAD + b"    schedule: " + b"1,2" * 100_000, "schedule: is longer than 1,000 characters"),
    "a long duration": (HEAD + b"    timeout: " + b"9" * ROOM + b"s", "timeout: is longer than 1,000 characters"),
    "a long number": (HEAD + b"    args: {a: " + b"9" * 300_000 + b"}", "args.a: the number is too long"),
    "a long zone": (HEAD + b"    timezone: " + b"a" * ROOM, "timezone: is longer than 1,000 characters"),
    "a long key": (HEAD + b"    ? " + b"a." * 100_000 + b"\n    : 1\n", "a key is longer than 200 characters"),
    "a long plain key": (HEAD + b"    " + b"a." * 400 + b": 1\n", "a key is longer than 200 characters"),
    "unknown keys": (HEAD + b"".join(b"    timeou%d: 1\n" % n for n in range(20_000)), "did you mean"),
    "the same key": (HEAD + b"    owner: x\n" * 3000, "duplicate key"),
    "aliases": (HEAD + b"    args: {l: [" + b"*a, " * 10_000 + b"]}\n", "aliases"),
    "secrets": (HEAD + b"    args:\n" + b"".join(b"      k%d_token: x\n" % n for n in range(30_000)), "a secret"),
    "zones": (
        b"version: 1\njobs:\n" + b"".join(b"  j%d: {call: m:f, timezone: City%d}\n" % (n, n) for n in range(3000)),
        "unknown timezone",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_soon(name: str) -> None:
    text, said = REFUSED[name]
    with pytest.raises(ConfigInvalid) as caught:
        parse(text)
    problems = caught.value.problems
    assert any(said in str(problem) for problem in problems), str(problems[0])[:200]
    assert len(problems) <= MOST_PROBLEMS + 1
    assert all(len(str(problem)) < 4000 for problem in problems), "nothing is quoted at length"


READ = {
    "one plain scalar": b"    description: " + b"x" * ROOM,
    "words": b"    description: " + b"x y " * (ROOM // 4),
    "a quoted scalar": b'    description: "' + b"x" * ROOM + b'"',
    "a block of text": b"    description: |\n" + b"      some words of a text\n" * 20_000,
    "a comment": b"    #" + b"x" * ROOM,
    "comments": b"#\n" * 1_000_000,
    "blank lines": b"\n" * 2_000_000,
    "blanks": b" " * ROOM,
    "no addresses": b'    args: {u: "' + b"://a:" * (ROOM // 5) + b'"}',
}


@pytest.mark.parametrize("name", READ)
def test_what_is_read_is_read_soon(name: str) -> None:
    (job,) = parse(HEAD + READ[name] + b"\n").jobs
    assert job.name == "a"


def test_a_hundred_megabytes_are_not_even_read(tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    with path.open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    with pytest.raises(ConfigInvalid, match="the file is larger than 8 MiB"):
        load(path)


def test_a_thousand_problems_are_enough() -> None:
    entries = b"".join(b"  j%d: {call: m:f, timeout: %d}\n" % (n, n) for n in range(1500))
    with pytest.raises(ConfigInvalid) as caught:
        parse(b"version: 1\njobs:\n" + entries)
    *first, last = caught.value.problems
    assert [problem.line for problem in first] == list(range(3, 3 + MOST_PROBLEMS))
    assert str(last) == "jobs.yaml:1003:22: there are more problems from here on: mend these first"
