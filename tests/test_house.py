"""The house's own rules, as tests: small files, small functions, and nothing in the tree that belongs elsewhere."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).parents[1]
SOURCES = sorted([*(REPO / "scheduler").rglob("*.py"), *(REPO / "jobs").rglob("*.py")])
LONGEST_FILE, LONGEST_FUNCTION = 300, 40


def tracked() -> list[Path]:
    try:
        listed = subprocess.run(["git", "ls-files"], cwd=REPO, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [REPO / name for name in listed.stdout.splitlines()]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(REPO)))
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            length = node.end_lineno - node.lineno + 1
            assert length <= LONGEST_FUNCTION, f"{node.name} has {length} lines"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(REPO)))
def test_every_room_says_what_it_is_for(path: Path) -> None:
    module = ast.parse(path.read_text(encoding="utf-8"))
    assert not module.body or ast.get_docstring(module), "a module without a docstring"


def test_no_package_registry_and_no_machine_is_named() -> None:
    hosts = [r"\.".join(parts) for parts in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"))]
    forbidden = re.compile("|".join([*hosts, r"/home/\w+/", r"/root/", r"--(extra-)?index-url"]), re.IGNORECASE)
    offenders = []
    for path in tracked():
        if path == Path(__file__) or not path.is_file():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if forbidden.search(line):
                offenders.append(f"{path.relative_to(REPO)}:{number}: {line.strip()[:100]}")
    assert offenders == []


def test_every_statement_file_begins_with_why() -> None:
    for path in sorted((REPO / "scheduler" / "store" / "sql").glob("*.sql")):
        assert path.read_text(encoding="utf-8").startswith("-- "), path.name
