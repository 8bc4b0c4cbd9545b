"""References are resolved late, and no message ever shows a value."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scheduler.config.jobs_file import parse
from scheduler.config.secrets import LARGEST_FILE, UnresolvedReference, is_reference, plain_secrets, resolve_args
from scheduler.core.errors import ConfigInvalid


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


# In two pieces, so that nobody's scanner takes this file for a leak.
SECRETS = [
    "postgresql://app:" + "hunter2@db/app",
    "see amqp://:" + "hunter2@broker, please",
    "redis://u:" + "p@ss@h:1/0",
    "AKIA" + "IOSFODNN7EXAMPLE",
    "key=AKIA" + "IOSFODNN7EXAMPLE;",
    "ghp_" + "0123456789abcdef",
    "github_pat_" + "0123456789abcdef",
    "xoxb-" + "12345-67890-abc",
    "xoxp-" + "12345-67890-abc",
    "sk_live_" + "4eC39HqLyjWDarjt",
    "-----BEGIN " + "PRIVATE KEY-----\nMII",
    "-----BEGIN RSA " + "PRIVATE KEY-----\nMII",
    "-----BEGIN OPENSSH " + "PRIVATE KEY-----",
]
HARMLESS = [
    "postgresql://app@db/app",
    "postgresql://app:@db/app",
    "https://example.com:8080/a@b",
    "https://example.com/a:b@c",
    "postgresql://app:{password}@db/app",
    "postgresql://app:${DB_PASSWORD}@db/app",
    "postgresql://app:<password>@db/app",
    "postgresql://app:***@db/app",
    "AKIA",
    "xoxb",
    "ghp_",
    "BEGIN PRIVATE KEY",
    "-----BEGIN CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----",
    "someone@example.com",
]


@pytest.mark.parametrize("text", SECRETS)
def test_a_secret_is_known_by_what_it_is_at_any_depth(text: str) -> None:
    args = {"a": text, "deep": [{"b": ["x", text]}], "named": {"env": text}, "number": 5}
    assert list(plain_secrets(args)) == [("a",), ("deep", 0, "b", 1), ("named", "env")]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_resembles_a_secret_is_taken(text: str) -> None:
    assert list(plain_secrets({"a": text, "deep": [{"b": [text]}]})) == []


def test_a_refused_secret_is_never_quoted() -> None:
    entry = {"call": "m:f", "args": {"url": "postgresql://app:hunter2@db/app", "list": ["AKIA" + "IOSFODNN7EXAMPLE"]}}
    with pytest.raises(ConfigInvalid) as caught:
        parse(json.dumps({"version": 1, "jobs": {"a": entry}}).encode())
    said = [str(problem).split(": ", 1)[1] for problem in caught.value.problems]
    assert said == [
        f"jobs.a.args.{where}: a secret must not stand in the file: write {{env: NAME}} or {{file: PATH}}"
        for where in ("url", "list.0")
    ]
    assert "hunter2" not in str(caught.value)
    assert "AKIA" not in str(caught.value)


def test_a_long_hostile_text_is_searched_quickly() -> None:
    for piece in ("://x:", "://:a", "-----BEGIN A", "AKIA", "xoxb-"):
        assert list(plain_secrets({"a": piece * 200_000})) in ([], [("a",)])
