"""libyaml's events against ruamel.yaml's: where the quick ones are taken, they say the same values and places."""

from __future__ import annotations

import random
import re
from pathlib import Path as File

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scheduler.config.yaml_events import can_be_quick, exact_events, may_differ, quick_events
from scheduler.config.yaml_reader import Document, _Reader, read_yaml
from scheduler.core.errors import ConfigInvalid

ROOT = File(__file__).parents[2]
PLAIN = """\
# a comment
version: 1
timezone: Europe/London   # another
defaults: {timeout: 10m, retry: {attempts: 3, backoff: 1m}, ratio: -1.5}

jobs:
  a-job:
    description: It's 5 o'clock, and "all" is well:or#not @ 100%
    schedule: "0 3 * * *"
    once_per: day
    call: jobs.registry:build
    args: {directory: var/registry, day: 2026-11-29, token: {env: T}, list: [1, 2.5, null, "a b", 'c']}

    # about what follows
    misfire:
      policy: latest
      within: 26h
    owner:
    runbook: https://example.com/a?b=c&d#e
  7-eleven: {call: m:f, "every": 5m}
  'quoted name': {}
  empty: []
"""
ODD = """\
version: 1
jobs:
  long:
    description: |
      Several lines,

      # not a comment
        kept as they are
    note: >-
      folded
      lines
    call: m:f
    args:
      list:
      - 1
      - {a: b}
      deep:
        - - x
          - y
    plain: goes
      on here
    quoted: "with \\u00e9scape"
    single: 'it''s'
    flow: {a: [1,
      2], b: c}
    star: "*"
  next:
    call: m:g
    tag: !x 5
    anchor: &one 1
    alias: *one
    twice: 1
    twice: 2
    flow: {a, b: , "c":1, [d]: e}
"""


def full(text: str) -> Document | str:
    try:
        return _Reader("f.yaml", text, exact_events).read()
    except ConfigInvalid as error:
        return str(error)


def quick(text: str) -> Document | None:
    """What is taken without asking ruamel.yaml; None: it is asked."""
    if not can_be_quick(text):
        return None
    try:
        document = _Reader("f.yaml", text, quick_events).read()
    except ConfigInvalid:
        return None
    return None if document.problems else document


def agree(text: str) -> bool:
    """Whether the quick events were taken; then the exact ones say the same."""
    mine, whole = quick(text), full(text)
    if mine is None:
        return False
    assert isinstance(whole, Document), whole
    assert whole.problems == []
    assert repr(mine.value) == repr(whole.value)  # 1 is not 1.0, and the order counts
    assert mine.places == whole.places
    return True


@pytest.mark.parametrize("text", [PLAIN, ODD.partition("  next:")[0], (ROOT / "jobs.yaml").read_text(encoding="utf-8")])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_good_files_are_read_quickly(text: str, ends: str) -> None:
    assert agree(text.replace("\n", ends))
    assert agree(text.rstrip("\n"))


@pytest.mark.parametrize(
    "line",
    [
        "a: b: c",
        "a: 'b' c",
        "a: {b: 1",
        "a: [1}",
        "a: b\n  c: d",
        " a: b",
        "a: b\n c: d",
        "- a",
        "a",
        "",
        "a: *b",
        "a:\n b",
        "a:\tb",
        "a: b\n\tc: d",
        "a: |\n b\na: c",
        "a: 1\na: 2",
        "a:\n  b: 1\n  b: 2",
        "{a: b}",
        "? a\n: b",
        "a: .inf",
        "~: a",
        "no: a",
        "1: a",
        "true: a",
        "--- \na: b",
        "a: b\n---\nc: d",
        "a: b\n...",
        "%YAML 1.1\n---\na: b",
        "a: b\x85c: d",
        "a: b\u2028c",
        "a: b\rc: d",
        'a: "b\n  c"',
        "a: 'b\nc: d'",
        "a: [b\n]",
        'a: "\\q"',
        "a: b #c\n  d",
        "a:b",
        "a : b",
        "a:  # c\n  b: 1",
        "a:\n    b: 1\n  c: 2",
        "a:\n  b: 1\n   c: 2",
        "a: -",
        "a: - b",
        "a: -5",
        "a: -.5",
        "a: +5",
        "a: =",
        "a: a - b",
        "a: a :b",
        "a: a: ",
        "a: [-1, a-b]",
        "a: [a:b, c]",
        "a: [a: b]",
        "a: {a: b,}",
        "a: [,]",
        "a: {a}",
        "a: {a:b}",
        "a: {a: http://x/y, b: 12:30}",
        "a: {a: x y  z, b: (c)}",
        "a: {a b: c}",
        "a: {a: b}#c",
        "a: {a: b} #c",
        "a: \u00e9t\u00e9",
        "a: x\u00a0y",
        "\u00e9: 1",
        "a: 'x' # y",
        'a: "x"# y',
        "a.b: 1",
        "a: " + "[" * 25 + "]" * 25,
        "k" * 300 + ": 1",
        "a: {" + "k" * 300 + ": 1}",
        "a: " + "x " * 2000,
        "a:\n- b\n- c",
        "a:\n- b\nc: d",
        "a:\n  - b\n- c",
        "a:\n  # only a comment\nb: 1",
        "a: |+\n  x\n\n\nb: 1",
        "a: |2\n    x\nb: 1",
        "a: >\n  x\n# c\n  y\nb: 1",
        "'a': 1\na: 2",
    ],
)
def test_corners(line: str) -> None:
    agree(line)
    agree("top: 1\nin:\n" + "\n".join("  " + one for one in line.split("\n")) + "\nlast: 2\n")


WORDS = st.sampled_from(
    [
        "a",
        "b-c",
        "1",
        "007",
        "null",
        "'q'",
        '"d"',
        '"a b"',
        "x y",
        ":",
        ": ",
        " ",
        "\n",
        "\n  ",
        "\n    ",
        "- ",
        "{",
        "}",
        "[",
        "]",
        ", ",
        "#",
        " # c",
        "*",
        "&x ",
        "!t ",
        "|\n",
        ">-\n",
        "?",
        "-",
        "0 3 * * *",
        "http://x",
        "a: ",
        "\nb: ",
        "\n  c: ",
        "\t",
        "\\",
        "%",
        "@",
        "'",
        '"',
        "=",
        "\r\n",
        "---\n",
        "...",
        "-5",
        ".5",
        "~",
    ]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(WORDS, max_size=14).map("".join))
@example("a: b\n  c: d\n")
def test_pieces_of_yaml(text: str) -> None:
    agree(text)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_good_files_with_damage(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([PLAIN, ODD]))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        word = data.draw(WORDS | st.just(""))
        text = text[:at] + word + text[at + data.draw(st.integers(0, 6)) :]
    agree(text)


AT_ONCE = re.compile(
    "[\t\x85\u2028\u2029\ufeff]|\r(?!\n)|^(?:---|\\.\\.\\.|%)|(?:^|[{,\\[-])[ ]*\\?(?:[ \r\n]|$)"
    "|[|>][-+0-9]*[ ]*(?:#[^\n]*)?(?:\\Z|\r?\n(?![ ]+[^\\s#]))",
    re.MULTILINE,
)
"""What `may_differ` looks for, in one pattern: plain to read, and slow."""


@settings(max_examples=1000, deadline=None)
@given(st.text("\n\n\n\r\t ??-.%|>#{[,+2a\x85\u2028\ufeff\u00a0", max_size=12))
@example("? a")
@example("a: >")
@example("a: |2 # b")
@example("a\n...")
def test_what_is_not_for_libyaml_is_found_as_by_one_pattern(text: str) -> None:
    assert may_differ(text) == (AT_ONCE.search(text) is not None)


def test_files_of_many_shapes() -> None:
    """Each key's value is drawn from ways to write one. Most such files are for the quick reader, and it is right."""
    chance, answered = random.Random(7), 0
    values = [
        "1",
        "-2.5",
        "x",
        "x y z",
        '"q # r"',
        "'s'",
        "",
        "{}",
        "[]",
        "{a: 1, b: [c, d]}",
        "|\n      t\n\n      u",
        ">-\n      v\n      w",
        "\n      k: 1\n      l:",
        "\n      - 1\n      - m: n",
        "\n    - 1",
        "# only a comment",
        "a: b",
        "*x",
        "{a: 1",
        "0 3 * * *",
        "null",
        "007",
        "1:30",
        "x  # c",
        "'it''s'",
        '"\\n"',
    ]
    for _ in range(300):
        lines = ["version: 1", "jobs:"]
        for job in range(chance.randint(1, 4)):
            lines.append(f"  j{job}:")
            for key in range(chance.randint(1, 5)):
                few = values[:16] + values[-8:] if chance.random() < 0.9 else values
                lines.append(f"    k{key}: {chance.choice(few)}")
                lines += chance.choice([[], [], [""], ["# c"], ["      # c"]])
        answered += agree("\n".join(lines) + "\n")
    assert answered > 150


def test_what_is_wrong_is_said_by_the_full_reader() -> None:
    with pytest.raises(ConfigInvalid, match=r"f\.yaml:3:9: quote the expression"):
        read_yaml(b"a:\n  b: 1\n  cron: @daily\n", "f.yaml")
