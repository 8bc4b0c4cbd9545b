"""The whole plan against the users' real modules, with places."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.config.check import check
from scheduler.config.jobs_file import load

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
