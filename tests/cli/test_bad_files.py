"""Jobs files that went wrong elsewhere, through the real command: a clear line with its place, and exit code 3."""

from __future__ import annotations

import pytest
from desk import Desk

HEAD = b"version: 1\njobs:\n  a:\n    call: work:quick\n"


def bomb() -> bytes:
    lines = [b"a: &a [ha, ha]\n"]
    lines += [b"%c: &%c [%s]\n" % (c, c, b", ".join([b"*%c" % (c - 1)] * 9)) for c in range(ord("b"), ord("k"))]
    return b"".join(lines)


CASES: dict[str, list[tuple[bytes, list[str]]]] = {
    "C106": [
        (HEAD + b"    schedule: */5 * * * *\n", ["jobs.yaml:5:15: ", "quote the expression"]),
        (HEAD + b"    schedule: @daily\n", ["jobs.yaml:5:15: ", "quote the expression"]),
    ],
    "C108": [
        (
            b"version: 1\njobs:\n  007: {call: 'work:quick'}\n  3.10: {call: m:f}\n  null: {call: m:f}\n",
            [
                'jobs.yaml:3:3: jobs.007: 007 is not a text in YAML: quote it, "007"',
                "jobs.yaml:4:3: ",
                "jobs.yaml:5:3: ",
            ],
        ),
        (
            HEAD + b"    on: x\n    pause_after_failures: yes\n",
            ["jobs.yaml:5:5: jobs.a.on: unknown key", "jobs.yaml:6:5: "],
        ),
    ],
    "C109": [
        (
            HEAD + b"    timeout: 1:30\n    retry: {backoff: 010}\n",
            [
                "jobs.yaml:5:5: jobs.a.timeout: '1:30' is not a duration: write 1h30m or 1m30s",
                "backoff: 10 has no unit",
            ],
        ),
        (HEAD + b"    at: 10:30\n", ["jobs.yaml:5:5: jobs.a.at: '10:30' is not an ISO date and time"]),
        (HEAD + b"    at: 03:00\n", ["jobs.yaml:5:5: jobs.a.at: '03:00' is not an ISO date and time"]),
    ],
    "C110": [
        (
            HEAD + b"    every: 5m\n    every: 6m\n  b: {call: 'work:quick'}\n  a: {call: 'work:quick'}\n",
            [
                "jobs.yaml:6:5: jobs.a.every: duplicate key: it stands on line 5 already (this is line 6)",
                "jobs.yaml:8:3: jobs.a: duplicate key: it stands on line 3 already (this is line 8)",
            ],
        ),
    ],
    "C113": [
        (HEAD.decode().encode("utf-16"), ["jobs.yaml:1:1: the file is UTF-16 or UTF-32: save it as UTF-8"]),
        (
            HEAD + "    owner: caf\u00e9\n".encode("latin-1"),
            ["jobs.yaml:5:15: byte 0xE9 is not UTF-8: save it as UTF-8"],
        ),
        (HEAD + b"\towner: x\n", ["jobs.yaml:5:1: a tab cannot indent YAML: use spaces"]),
        (HEAD + b"    owner: \x1b[31mx\n", ["jobs.yaml:5:12: the invisible character U+001B is not allowed"]),
    ],
    "C114": [
        (HEAD + b"---\n" + HEAD, ["jobs.yaml:5:1: a second document begins here (---): a file holds one"]),
        (b"- name: a\n", ["jobs.yaml:1:1: the file must be a mapping with the keys version and jobs"]),
        (b"version: 1\njobs: [{a: {}}]\n", ["jobs.yaml:2:1: jobs: must be a mapping, {key: value}, not a list"]),
        (b"", ["jobs.yaml:1:1: the file is empty"]),
    ],
    "C116": [
        (
            HEAD + b"    timout: 600\n    overlap: forbidd\n    retry: 3\n    crash_limit: '3'\n",
            [
                'jobs.yaml:5:5: jobs.a.timout: unknown key (did you mean "timeout"?)',
                "jobs.yaml:6:5: jobs.a.overlap: 'forbidd' is not allowed; allowed: skip, ",
                "jobs.yaml:7:5: jobs.a.retry: must be a mapping, {key: value}, not a number",
                "jobs.yaml:8:5: jobs.a.crash_limit: must be a whole number, not a text",
                "4 problems",
            ],
        ),
    ],
    "C117": [
        (HEAD + b"    args: {line: echo foo: bar}\n", ["jobs.yaml:5:"]),
        (HEAD + b"    args:\n      line: echo foo: bar\n", ["jobs.yaml:6:21: a colon inside a value: quote the value"]),
        (HEAD + b"    args:\n      line: `date`\n", ["jobs.yaml:6:13: quote the expression"]),
        (
            HEAD + b"    args:\n      line: !shout\n",
            ["jobs.yaml:6:13: jobs.a.args.line: tags are not allowed: quote the value"],
        ),
    ],
    "C011": [(HEAD + b"    schedule: 0 0 3 * * *\n", ["jobs.yaml:5:5: jobs.a.schedule: expected 5 fields", "got 6"])],
}
OTHERS = [
    (bomb(), ["jobs.yaml:2:8: b.0: aliases are not allowed"]),
    (HEAD + b"#" * 9_000_000, ["jobs.yaml:1:1: the file is larger than 8 MiB"]),
    (
        HEAD + b"    every: !!python/object/apply:os.system ['x']\n",
        ["jobs.yaml:5:12: jobs.a.every: tags are not allowed"],
    ),
    (
        HEAD + "    schedule: \u0663 3 * * *\n".encode(),
        ["jobs.yaml:5:5: jobs.a.schedule: '\u0663' (U+0663) is not allowed"],
    ),
    (
        HEAD + "    timeout: \uff11\uff15m\n".encode(),
        ["jobs.yaml:5:5: jobs.a.timeout: '\uff11\uff15m' is not a duration"],
    ),
    (HEAD + b"    schedule: '@daily'\n    every: 5m\n", ["jobs.yaml:6:5: jobs.a.every: schedule is given already"]),
    (HEAD + b"    timezone:\n", ["jobs.yaml:5:5: jobs.a.timezone: is empty; write e.g. Europe/London"]),
    (HEAD + b"    <<: {every: 5m}\n", ["jobs.yaml:5:5: jobs.a.<<: merge keys are not allowed"]),
]
PARAMETERS = [
    *(pytest.param(text, said, marks=pytest.mark.case(case), id=f"{case}-{n}")
      for case, found in CASES.items() for n, (text, said) in enumerate(found)),
    *(pytest.param(text, said, id=said[0][:40]) for text, said in OTHERS),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), PARAMETERS)
def test_a_bad_file_is_a_clear_line(desk: Desk, text: bytes, said: list[str]) -> None:
    (desk.folder / "jobs.yaml").write_bytes(text)
    answer = desk.run("check")
    assert (answer.code, answer.out) == (3, "")
    for part in said:
        assert part in answer.err
    assert all(len(line) < 400 for line in answer.err.splitlines())


@pytest.mark.case("C106", "C108", "C109", "C110", "C113", "C114", "C116", "C117")
def test_what_only_looks_dangerous_is_read_as_it_stands(desk: Desk) -> None:
    """Byte order mark, Windows line ends, a plain crontab line, names that older YAML took for true and false."""
    (desk.folder / "say.py").write_text("def it(ctx, line, mark='', text=''): pass\n")
    lines = [
        "\ufeffversion: 1", "defaults: {timeout: 1m}", "jobs:",
        "  no: {call: 'work:quick', schedule: 0 3 * * *}",
        "  off: {call: 'work:quick', description: no}",
        '  "007": {call: "work:quick"}',
        "  lines:", "    call: say:it", "    args:", "      line: curl http://x/ # a note", "      mark: '!x `y` {a}'",
        "      text: >", "        folded", "        lines", "",
    ]  # fmt: skip
    (desk.folder / "jobs.yaml").write_bytes("\r\n".join(lines).encode())
    assert desk.run("check").out == "jobs.yaml: 4 jobs, no problems\n"
    rows = {row["job"]: row for row in desk.run("check", "--effective", "-o", "json").rows}
    assert list(rows) == ["no", "off", "007", "lines"]
    assert rows["no"]["schedule"] == "0 3 * * *"
    assert rows["off"]["description"] == "no"
    shown = {key: rows["lines"][key] for key in ("args.line", "args.mark", "args.text")}
    assert shown == {"args.line": "curl http://x/", "args.mark": "!x `y` {a}", "args.text": "folded lines\n"}


@pytest.mark.case("C076")
def test_a_broken_edit_is_fatal_at_a_start_and_mended_by_the_next(desk: Desk) -> None:
    good = HEAD + b"    every: 1h\n    timeout: 1m\n"
    for text, code in ((good, 0), (b"version: 1\njobs: [\n", 3), (good, 0)):
        (desk.folder / "jobs.yaml").write_bytes(text)
        assert desk.run("check").code == code
        if code:
            answer = desk.run("serve")
            assert answer.code == code
            assert answer.err.startswith("jobs.yaml:3:1: not valid YAML: ")
            assert not (desk.folder / ".soloist").exists()
