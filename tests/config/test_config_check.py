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


def test_the_callables_of_sound_entries_are_checked_beside_broken_ones(root: Path) -> None:
    """An entry that is broken itself is not looked into any further: what it means is not known."""
    (root / "jobs.yaml").write_text(MIXED, encoding="utf-8")
    draft = read(root / "jobs.yaml")
    found = [(problem.line, problem.path) for problem in check_draft(draft)]
    assert found == [
        (2, "timezone"),
        (5, "jobs.typo.call"),
        (8, "jobs.half.timeuot"),
        (10, "jobs.Wrong-Name"),
        (14, "jobs.repeated.call"),
        (15, "jobs.aliased"),
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
