"""The protocol's model, searched exhaustively, and held beside the code in its plainest facts."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from model.searches import BREAKS, EVERY_TIME, FAILS, SEARCHES, Search

from scheduler.core.model import Status

MODEL = Path(__file__).with_name("protocol.pml")
REPO = Path(__file__).parents[2]
DEEPEST = 100_000
MEMORY = 1400  # MB


def found(search: Search, room: Path) -> str:
    """What spin's verifier prints of a search that looked at everything, or found an error."""
    for tool in ("spin", "gcc"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    defines = [f"-D{flag}" for flag in search.flags.split()] + ([] if search.mode == "safe" else ["-DENDS"])
    live = search.mode == "live"
    # compiled without optimising: most searches are over before an optimiser would be
    optimise, ask = "-O1" if search.big else "-O0", "-DNP" if live else "-DSAFETY"
    build = ["gcc", optimise, "-w", f"-DMEMLIM={MEMORY}", "-DNOFAIR", ask]
    shutil.copy(MODEL, room)
    for command in (["spin", "-a", *defines, MODEL.name], [*build, "-o", "pan", "pan.c"]):
        done = subprocess.run(command, cwd=room, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    # -E: where nothing more can happen, a process of the model's own judges, not spin's view of a valid end
    command = ["./pan", "-E", f"-m{DEEPEST}", *(["-l"] if live else [])]
    said = subprocess.run(command, cwd=room, capture_output=True, text=True, check=False, timeout=170).stdout
    assert "errors: " in said, said
    assert "max search depth too small" not in said
    assert "reached -DMEMLIM" not in said
    return said


@pytest.mark.parametrize(
    "search",
    [pytest.param(s, id=s.name, marks=[] if s.name in EVERY_TIME else [pytest.mark.full]) for s in SEARCHES],
)
def test_search(search: Search, tmp_path: Path) -> None:
    said = found(search, tmp_path)
    violated = re.search(r"pan:\d+: (.*)", said)  # an assertion, or a cycle
    if search.fails is None:
        assert violated is None, f"{search.shows}: {violated and violated[0]}"
        assert "errors: 0" in said
    else:
        assert violated is not None, f"not found: {search.shows}"
        assert FAILS[search.fails] in violated[1], violated[0]


def test_states_are_those_of_the_code() -> None:
    declared = re.search(r"mtype = \{ absent, ([a-z_, ]+) \}", MODEL.read_text(encoding="utf-8"))
    assert declared is not None
    assert set(declared[1].split(", ")) == {status.value for status in Status}


def test_files_that_the_model_names_exist() -> None:
    named = re.findall(r"scheduler/[\w/]+\.(?:sql|py)", MODEL.read_text(encoding="utf-8"))
    assert len(named) > 20
    assert [name for name in named if not (REPO / name).is_file()] == []


def test_every_rule_that_can_be_taken_away_is_searched_for() -> None:
    in_model = set(re.findall(r"BREAK_\w+", MODEL.read_text(encoding="utf-8"))) - {"BREAK_x"}
    assert in_model == {flag for search in BREAKS for flag in search.flags.split() if flag.startswith("BREAK_")}


def test_searches_have_names_of_their_own() -> None:
    names = [search.name for search in SEARCHES]
    assert len(set(names)) == len(names)
    assert set(names) >= EVERY_TIME
