"""References are resolved late, and no message ever shows a value."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.config.secrets import LARGEST_FILE, UnresolvedReference, is_reference, resolve_args


def test_references_anywhere_are_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DB_PASSWORD", "hunter2")
    (tmp_path / "token").write_text("t0ken\n", encoding="utf-8")
    args = {
        "password": {"env": "DB_PASSWORD"},
        "deep": {"list": [{"file": str(tmp_path / "token")}, 5, None]},
        "relative": {"file": "token"},
        "plain": "x",
    }
    before = repr(args)
    assert resolve_args(args, tmp_path) == {
        "password": "hunter2",
        "deep": {"list": ["t0ken", 5, None]},
        "relative": "t0ken",
        "plain": "x",
    }
    assert repr(args) == before


@pytest.mark.parametrize(
    "value", [{"env": "A", "file": "B"}, {"env": 5}, {"env": None}, {}, {"environment": "A"}, ["env", "A"], "env", None]
)
def test_what_is_no_reference_stays(value: object) -> None:
    assert not is_reference(value)
    assert resolve_args({"a": value}) == {"a": value}


@pytest.mark.parametrize(("content", "text"), [("x\n", "x"), ("x\r\n", "x"), ("x\n\n", "x\n"), ("x", "x"), ("", "")])
def test_one_newline_at_the_end_is_dropped(tmp_path: Path, content: str, text: str) -> None:
    (tmp_path / "s").write_bytes(content.encode())
    assert resolve_args({"a": {"file": "s"}}, tmp_path) == {"a": text}


def test_an_unset_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_THERE", raising=False)
    with pytest.raises(UnresolvedReference) as caught:
        resolve_args({"a": {"b": [{"env": "NOT_THERE"}]}})
    assert str(caught.value) == "args.a.b[0]: {env: NOT_THERE}: the environment variable is not set"


@pytest.mark.parametrize("kind", ["absent", "folder", "large", "bytes", "nul"])
def test_a_file_that_gives_no_text_is_named_without_its_content(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "secret"
    if kind == "folder":
        path.mkdir()
    elif kind == "large":
        path.write_bytes(b"hunter2" * LARGEST_FILE)
    elif kind == "bytes":
        path.write_bytes(b"hunter2\xff")
    target = "sec\0ret" if kind == "nul" else "secret"
    with pytest.raises(UnresolvedReference) as caught:
        resolve_args({"a": {"file": target}}, tmp_path)
    assert str(caught.value).startswith("args.a: {file: ")
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
