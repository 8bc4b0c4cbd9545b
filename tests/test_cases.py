"""The log of cases that broke other runners: each of the kinds we answer for is claimed by a test of its whole kind.

A test claims a case with `@pytest.mark.case("C034")`. The markers are read from the sources, so nothing is imported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
ANSWERED = {
    "A": "cron parsing",
    "B": "daylight saving, zones",
    "C": "double runs, lock races",
    "D": "crash, lease, zombie",
    "E": "missed ticks",
    "F": "edits, reload, rolling deploy",
    "H": "database outage, failover",
    "L": "YAML",
}


def cases_of(log: str) -> dict[str, tuple[str, str]]:
    """Case -> (letter of its section, title), as the log has them."""
    found, section = {}, ""
    for line in log.splitlines():
        if heading := re.match(r"## ([A-Z])\. ", line):
            section = heading[1]
        elif case := re.match(r"### (C\d{3}) (.*)", line):
            found[case[1]] = section, case[2]
    return found


def claims_of(source: str) -> Iterator[str]:
    """The cases named by the markers in a test file: over tests, in a list of parameters, or for the whole file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.case":
            yield from (str(word.value) for word in node.args if isinstance(word, ast.Constant))


def claimed() -> dict[str, set[str]]:
    """Case -> the files that claim it."""
    claims: dict[str, set[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for case in claims_of(path.read_text(encoding="utf-8")):
            claims.setdefault(case, set()).add(str(path.relative_to(TESTS)))
    return claims


def test_every_case_of_our_kinds_is_claimed_by_a_test(shared: Path) -> None:
    cases = cases_of((shared / "cases.md").read_text(encoding="utf-8"))
    assert {section for section, _ in cases.values()} >= set(ANSWERED), "the log has other sections by now"
    claims = claimed()
    assert [f"{c} {title}" for c, (s, title) in cases.items() if s in ANSWERED and c not in claims] == []


def test_every_claim_names_a_case_of_the_log(shared: Path) -> None:
    cases = cases_of((shared / "cases.md").read_text(encoding="utf-8"))
    assert {case: files for case, files in claimed().items() if case not in cases} == {}


def test_the_markers_are_read_wherever_they_stand() -> None:
    source = """
import pytest
pytestmark = [pytest.mark.full, pytest.mark.case("C001")]
@pytest.mark.case("C002", "C003")
@pytest.mark.parametrize("x", [1, pytest.param(2, marks=pytest.mark.case("C004"))])
def test_it(x): ...
class TestMore:
    @pytest.mark.case("C005")
    def test_more(self): "C006 is only talked about"
"""
    assert sorted(claims_of(source)) == ["C001", "C002", "C003", "C004", "C005"]


def test_the_log_is_read_by_section() -> None:
    log = "## C. Races\n### C034 Two replicas\n- Src: C001\n## D. Crash\n### C054 kill -9\n"
    assert cases_of(log) == {"C034": ("C", "Two replicas"), "C054": ("D", "kill -9")}
