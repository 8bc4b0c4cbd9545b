"""The whole plan against the users' real modules, with places."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.config.check import check, check_draft
from scheduler.config.jobs_file import load, read
from scheduler.core.errors import ConfigInvalid

JOBS = """\
version: 1
jobs:
  good:
    call: bakery.bread:bake
    args: {loaves: 3, oven: {env: OVEN}}
  wrong-args:
    call: bakery.bread:bake
    args:
      loaves: "3"
      ovn: x
  missing-args:
    call: bakery.bread:bake
  typo:
    call: bakery.bread:bak
  no-module:
    call: bakery.bred:bake
  broken-a:
    call: bakery.broken:a
  broken-b:
    call: bakery.broken:b
"""


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "bakery").mkdir()
    (tmp_path / "bakery" / "bread.py").write_text(
        "def bake(ctx, loaves: int, oven: str = 'left'): ...\n", encoding="utf-8"
    )
    (tmp_path / "bakery" / "broken.py").write_text(
        "from pathlib import Path\nwith Path(__file__).with_name('log').open('a') as f: f.write('x')\n1 / 0\n",
        encoding="utf-8",
    )
    (tmp_path / "jobs.yaml").write_text(JOBS, encoding="utf-8")
    path_before, modules_before = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = path_before
    for name in set(sys.modules) - modules_before:
        del sys.modules[name]


def test_every_problem_has_its_place(root: Path) -> None:
    problems = [str(problem).removeprefix(f"{root}/") for problem in check(load(root / "jobs.yaml"))]
    assert problems == [
        "jobs.yaml:9:7: jobs.wrong-args.args.loaves: input should be a valid integer",
        'jobs.yaml:10:7: jobs.wrong-args.args.ovn: unknown argument (did you mean "oven"?)',
        "jobs.yaml:11:3: jobs.missing-args.args.loaves: missing: the function needs this argument",
        "jobs.yaml:14:5: jobs.typo.call: no function 'bak' in bakery.bread (did you mean \"bake\"?)",
        "jobs.yaml:16:5: jobs.no-module.call: no module 'bakery.bred' (did you mean \"bakery.bread\"?)",
        "jobs.yaml:18:5: jobs.broken-a.call: importing bakery.broken raised ZeroDivisionError: division by zero "
        "(bakery/broken.py:3)",
        "jobs.yaml:20:5: jobs.broken-b.call: importing bakery.broken raised ZeroDivisionError: division by zero "
        "(bakery/broken.py:3)",
    ]


def test_a_broken_module_is_tried_once(root: Path) -> None:
    check(load(root / "jobs.yaml"))
    assert (root / "bakery" / "log").read_text(encoding="utf-8") == "x"


def test_a_good_plan_has_no_problems(root: Path) -> None:
    text = JOBS[: JOBS.index("  wrong-args:")]
    (root / "jobs.yaml").write_text(text, encoding="utf-8")
    assert check(load(root / "jobs.yaml")) == []


MIXED = """\
version: 1
timezone: Nowhere
jobs:
  typo:
    call: bakery.bread:bak
  half:
    call: bakery.bread:bake
    timeuot: 5m
    args: {loaves: three}
  Wrong-Name:
    call: bakery.bread:bak
  repeated:
    call: bakery.bread:bake
    call: bakery.bread:bake
  aliased: &one
    call: bakery.bread:bak
  secret:
    call: bakery.bread:bake
    args: {loaves: 1, oven: "redis://me:hunter2@oven"}
  args:
    call: bakery.bread:bake
    args: {ovn: x}
"""


def test_every_call_is_checked_whatever_else_is_wrong_with_its_entry(root: Path) -> None:
    """Or each mistake that is mended would bring the next to light. A call that stands twice is not known."""
    (root / "jobs.yaml").write_text(MIXED, encoding="utf-8")
    draft = read(root / "jobs.yaml")
    found = [(problem.line, problem.path) for problem in check_draft(draft)]
    assert found == [
        (2, "timezone"),
        (5, "jobs.typo.call"),
        (8, "jobs.half.timeuot"),
        (9, "jobs.half.args.loaves"),
        (10, "jobs.Wrong-Name"),
        (11, "jobs.Wrong-Name.call"),
        (14, "jobs.repeated.call"),
        (15, "jobs.aliased"),
        (16, "jobs.aliased.call"),
        (19, "jobs.secret.args.oven"),
        (22, "jobs.args.args.loaves"),
        (22, "jobs.args.args.ovn"),
    ]
    assert [job.name for job in draft.plan.jobs] == ["typo", "args"]
    with pytest.raises(ConfigInvalid) as caught:
        draft.whole()
    assert len(caught.value.problems) == 6, "a draft with problems is never taken for a plan"


def test_a_file_that_is_no_mapping_is_still_one_problem(root: Path) -> None:
    (root / "jobs.yaml").write_text("[1]", encoding="utf-8")
    assert len(check_draft(read(root / "jobs.yaml"))) == 1


CALLS = [
    # the entry, and the keys of which something is said
    ('{call: "bakery.nope:x", schedule: "0 25 * * *"}', ["call", "schedule"]),
    ('{call: "bakery.bread:bake", args: {lves: 1}, ownr: x}', ["args.lves", "args.loaves", "ownr"]),
    ('{call: bakery, args: {lves: 1}}', ["call"]),
    ('{call: "bakery.bread:bak", args: [1]}', ["call", "args"]),
    ('{call: "bakery.bread:bake", args: [1]}', ["args"]),
    ('{call: "bakery.bread:bake", args: *x}', ["args"]),
    ('{call: "bakery.bread:bake", args: {loaves: *x, ovn: 1}}', ["args.loaves", "args.ovn"]),
    ('{call: "bakery.bread:bake", args: {loaves: 1, oven: {token: x}}, every: 5}', ["args.oven.token", "every"]),
    ('{call: "bakery.bread:bake", <<: {args: {loaves: 1}}}', ["<<"]),
    ('{call: "bakery.bread:bake", args: {<<: {loaves: 1}}}', ["args.<<"]),
    ('{call: *x, args: {lves: 1}}', ["call"]),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "keys"), CALLS)
def test_all_of_an_entry_at_once(root: Path, entry: str, keys: list[str]) -> None:
    (root / "jobs.yaml").write_text(f"version: 1\njobs:\n  j: {entry}\n", encoding="utf-8")
    found = [problem.path.removeprefix("jobs.j.") for problem in check_draft(read(root / "jobs.yaml"))]
    assert sorted(found) == sorted(keys)


def test_new_code_in_a_loaded_module_takes_a_restart_and_that_is_said(root: Path) -> None:
    """A living replica checks an edit against the modules that it has; a command has them anew."""
    path, bread = root / "jobs.yaml", root / "bakery" / "bread.py"
    path.write_text("version: 1\njobs:\n  a: {call: bakery.bread:bake, args: {loaves: 1}}\n", encoding="utf-8")
    assert check_draft(read(path)) == ()
    path.write_text(
        "version: 1\njobs:\n  a: {call: bakery.bread:late}\n  b: {call: bakery.bread:bake, args: {lves: 1}}\n",
        encoding="utf-8",
    )
    note = "; bakery.bread was edited since this process loaded it: a restart takes the new code"
    assert not any(note in problem.message for problem in check_draft(read(path))), "nothing was edited yet"
    bread.write_text("def late(ctx): ...\ndef bake(ctx, lves: int): ...\n", encoding="utf-8")
    late, unknown, missing = check_draft(read(path))
    assert late.message == f"no function 'late' in bakery.bread (there are: bake){note}"
    assert unknown.message.endswith(note)
    assert missing.message.endswith(note)
