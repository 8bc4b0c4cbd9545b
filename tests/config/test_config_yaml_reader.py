"""Bytes in, plain values with places out; and one clear line for whatever cannot be read."""

from __future__ import annotations

import pytest

from scheduler.config.yaml_reader import LARGEST, read_yaml
from scheduler.core.errors import ConfigInvalid

SLIP = "this line is indented differently from its neighbours"
UNREADABLE = [
    # unquoted cron expressions, the classic
    (b"a:\n  schedule: */5 * * * *\n", "f.yaml:2:13", "quote the expression"),
    (b"a:\n  schedule: */15,*/20 * * * *\n", "f.yaml:2:13", "quote the expression"),
    (b"a:\n  schedule: * * * * *\n", "f.yaml:2:13", "quote the expression"),
    (b"a: {call: x, schedule: */5 * * * *, every: 1}\n", "f.yaml:1:24", "quote the expression"),
    (b"- schedule: */5 * * * *\n", "f.yaml:1:13", "quote the expression"),
    (b"a:\n  schedule: @daily\n", "f.yaml:2:13", "quote the expression"),
    (b"a: `date`\n", "f.yaml:1:4", "quote"),
    # encodings and invisible characters
    ("a: 1\n".encode("utf-16"), "f.yaml:1:1", "save it as UTF-8"),
    ("a: 1\n".encode("utf-16-be"), "f.yaml:1:1", "UTF-16"),
    ("a: 1\n".encode("utf-32"), "f.yaml:1:1", "save it as UTF-8"),
    ("a: 1\nb: caf\u00e9\n".encode("latin-1"), "f.yaml:2:7", "byte 0xE9 is not UTF-8"),
    (b"a: 1\r\nb: \x07\r\n", "f.yaml:2:4", "U+0007"),
    (b"a: 1\nb: x\0y\n", "f.yaml:2:5", "U+0000"),
    (b"a:\n\tb: 1\n", "f.yaml:2:1", "a tab cannot indent YAML"),
    (b"a:\n  b: 1\n  \tc: 2\n", "f.yaml:3:3", "a tab cannot indent YAML"),
    # documents
    (b"", "f.yaml:1:1", "the file is empty"),
    (b"# only a comment\n", "f.yaml:1:1", "the file is empty"),
    (b"a: 1\n---\nb: 2\n", "f.yaml:2:1", "a second document"),
    (b"%YAML 1.1\n---\na: yes\n", "f.yaml:", "only YAML 1.2"),
    # values that YAML eats
    (b"command: echo foo: bar\n", "f.yaml:1:18", "quote the value"),
    (b"a: 'x\n", "f.yaml:", "not valid YAML"),
    (b"a: [1, 2\n", "f.yaml:", "not valid YAML"),
    (b"{a: 1}}\n", "f.yaml:1:7", "not valid YAML"),
    (b'a: "\\U99999999"\n', "f.yaml:1:", "not readable as YAML"),
    # a slip of the indent
    (b"a:\n  b: 1\n c: 2\n", "f.yaml:3:2: ", f"{SLIP}: line 2 begins at column 3, this one at column 2"),
    (b"a:\n  b: 1\n\n  # c\n c: 2\n", "f.yaml:5:2: ", f"{SLIP}: line 2 begins at column 3, this one at column 2"),
    (b"a:\n  b:\n    c: 1\n   d: 2\n", "f.yaml:4:4: ", f"{SLIP}: line 3 begins at column 5, this one at column 4"),
    (b"a:\n  b: x\n   c: 2\n", "f.yaml:3:4: ", f"{SLIP}: line 2 begins at column 3, this one at column 4 (if this"),
    (b"a:\n  - x\n - y\n", "f.yaml:3:2: ", f"{SLIP}: line 2 begins at column 3, this one at column 2"),
    (b" a: 1\nb: 2\n", "f.yaml:2:1: ", f"{SLIP}: line 1 begins at column 2, this one at column 1"),
    (b"a: 1\n- b\n", "f.yaml:2:1: ", "not valid YAML"),
    (b'a: "x" y\n', "f.yaml:1:8: ", "not valid YAML"),
    # sizes
    (b"[" * 30 + b"]" * 30, "f.yaml:1:22", "nested deeper than 20 levels"),
    (b"#" * (LARGEST + 1), "f.yaml:1:1", "larger than 8 MiB"),
]


@pytest.mark.parametrize(("text", "place", "said"), UNREADABLE)
def test_what_cannot_be_read_is_one_clear_line(text: bytes, place: str, said: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        read_yaml(text, "f.yaml")
    (problem,) = caught.value.problems
    assert str(problem).startswith(place)
    assert said in problem.message
    assert "\n" not in str(problem)


PROBLEMS = [
    (b"a: &x 1\nb: *x\n", ["f.yaml:1:4: a: anchors", "f.yaml:2:4: b: aliases"]),
    (b"a: !!python/object:os.system x\n", ["f.yaml:1:4: a: tags"]),
    (b"a: !secret x\nb: !!str 5\n", ["f.yaml:1:4: a: tags", "f.yaml:2:4: b: tags"]),
    (b"<<: {a: 1}\nb: 2\n", ["f.yaml:1:1: <<: merge keys"]),
    (b"a: 1\nb: 2\na: 3\n", ["f.yaml:3:1: a: duplicate key: it stands on line 1 already (this is line 3)"]),
    (b"x:\n  a: 1\n  a: 2\n  a: 3\n", ["f.yaml:3:3: x.a: duplicate key", "f.yaml:4:3: x.a: duplicate key"]),
    (b"007: x\n3.10: y\n0x1F: z\n", ["f.yaml:1:1: 007: 007 is not a text", "f.yaml:2:1: 3.10: ", "f.yaml:3:1: 0x1F: "]),
    (b"true: x\nnull: y\n", ["f.yaml:1:1: true: ", "f.yaml:2:1: null: "]),
    (b": x\n", ["f.yaml:1:1: "]),
    (b"? [a, b]\n: 1\n", ["f.yaml:1:3: a key must be a text"]),
    (b"a: .nan\nb: -.inf\nc: 1e999\n", ["f.yaml:1:4: a: ", "f.yaml:2:4: b: ", "f.yaml:3:4: c: "]),
    (b'a: "\\0"\nb: "\\ud800"\n', ["f.yaml:1:4: a: NUL", "f.yaml:2:4: b: NUL"]),
    (b"a: " + b"9" * 5000, ["f.yaml:1:4: a: the number is too long"]),
]


@pytest.mark.parametrize(("text", "said"), PROBLEMS)
def test_what_is_not_allowed_is_listed_and_the_rest_is_read(text: bytes, said: list[str]) -> None:
    document = read_yaml(text, "f.yaml")
    found = [str(problem) for problem in document.problems]
    assert len(found) == len(said)
    for problem, beginning in zip(found, said, strict=True):
        assert problem.startswith(beginning)


def test_a_non_text_key_says_quote_it() -> None:
    assert 'quote it, "007"' in read_yaml(b"007: x\n", "f.yaml").problems[0].message


def test_words_of_older_yaml_are_text() -> None:
    text = b"a: no\nb: on\nc: 10:30\nd: 2026-11-29\ne: 1_000\nf: 010:00\nno: y\noff: z\n"
    assert read_yaml(text, "f.yaml").value == {
        "a": "no",
        "b": "on",
        "c": "10:30",
        "d": "2026-11-29",
        "e": "1_000",
        "f": "010:00",
        "no": "y",
        "off": "z",
    }


def test_scalars_of_the_core_schema() -> None:
    text = b"[null, ~, true, FALSE, 12, -3, 010, 0o17, 0x1F, 1.5, 1e3, .5, '12', \"true\", '', 0o9, 1.2.3, -]"
    values = read_yaml(text.replace(b", -]", b", +]"), "f.yaml").value
    assert values == [
        None,
        None,
        True,
        False,
        12,
        -3,
        10,
        15,
        31,
        1.5,
        1000.0,
        0.5,
        "12",
        "true",
        "",
        "0o9",
        "1.2.3",
        "+",
    ]
    assert [type(value) for value in values[2:6]] == [bool, bool, int, int]


def test_a_bom_and_windows_line_ends_are_fine() -> None:
    document = read_yaml(b"\xef\xbb\xbfa: 1\r\nb:\r\n  c: [x, y]\r\n", "f.yaml")
    assert document.value == {"a": 1, "b": {"c": ["x", "y"]}}
    assert document.problems == []
    assert document.places[("b", "c")] == (3, 3)
    assert document.places[("b", "c", "1")] == (3, 10)


def test_no_message_quotes_a_line_of_the_file() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        read_yaml(b"password: 'hunter2\n", "f.yaml")
    assert "hunter2" not in str(caught.value)
