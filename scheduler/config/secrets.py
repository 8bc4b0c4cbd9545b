"""Secrets by reference: `{env: NAME}` and `{file: PATH}` in a job's args. The spec keeps the reference, never a value.

The spec goes to the database, to logs and to other replicas; so a reference is resolved only when a body starts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from scheduler.core.errors import SoloistError

LARGEST_FILE = 64 * 1024
_SECRET_NAME = re.compile(r"(?:^|_)(?:password|passwd|secret|token|api_?key|private_?key)$")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class UnresolvedReference(SoloistError):
    """A reference leads nowhere. The message names the argument and the reference, never a value."""

    exit_code = 3


def is_reference(value: object) -> bool:
    """Whether `value` is `{env: NAME}` or `{file: PATH}`: exactly that one key, and a text."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return False
    ((key, target),) = value.items()
    return key in ("env", "file") and isinstance(target, str)


def resolve_args(args: Mapping[str, Any], root: Path | None = None) -> dict[str, Any]:
    """A copy of `args` with every reference replaced by its text. Raises UnresolvedReference.

    `root`: where relative `{file: …}` paths begin (the folder of jobs.yaml); None takes the working directory. One
    newline at the end of a file is dropped, as editors and `kubectl create secret` add it.
    """
    return {name: _resolved(value, name, root) for name, value in args.items()}


def plain_secrets(args: Mapping[str, Any]) -> Iterator[tuple[str | int, ...]]:
    """Paths of plain texts under a key that is named like a secret (`db_password`, `apiKey`, …)."""
    for name, value in args.items():
        yield from _plain(value, (name,), secret=_named_like_secret(name))


def _plain(value: object, path: tuple[str | int, ...], *, secret: bool) -> Iterator[tuple[str | int, ...]]:
    if is_reference(value):
        return
    if isinstance(value, str) and secret:
        yield path
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _plain(inner, (*path, key), secret=_named_like_secret(key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _plain(inner, (*path, index), secret=secret)


def _named_like_secret(key: object) -> bool:
    if not isinstance(key, str):
        return False
    return _SECRET_NAME.search(_CAMEL.sub("_", key).lower().replace("-", "_")) is not None


def _resolved(value: Any, path: str, root: Path | None) -> Any:
    if is_reference(value):
        ((kind, target),) = value.items()
        return _from_environment(target, path) if kind == "env" else _from_file(target, path, root)
    if isinstance(value, Mapping):
        return {key: _resolved(inner, f"{path}.{key}", root) for key, inner in value.items()}
    if isinstance(value, list):
        return [_resolved(inner, f"{path}[{index}]", root) for index, inner in enumerate(value)]
    return value


def _from_environment(name: str, path: str) -> str:
    text = os.environ.get(name)
    if text is None:
        raise UnresolvedReference(f"args.{path}: {{env: {name}}}: the environment variable is not set")
    return text


def _from_file(target: str, path: str, root: Path | None) -> str:
    try:
        with ((root or Path()) / target).open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            raise UnresolvedReference(f"args.{path}: {{file: {target}}}: larger than 64 KiB")
        text = content.decode("utf-8")
    except OSError as error:
        raise UnresolvedReference(f"args.{path}: {{file: {target}}}: {error.strerror or 'cannot be read'}") from None
    except ValueError:
        # A NUL in the path, or bytes that are no UTF-8; the latter's own message would quote a byte of the secret.
        raise UnresolvedReference(f"args.{path}: {{file: {target!r}}}: not a path to a UTF-8 text") from None
    return text[:-1].removesuffix("\r") if text.endswith("\n") else text
