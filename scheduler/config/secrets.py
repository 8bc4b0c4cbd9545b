"""Secrets by reference: `{env: NAME}` and `{file: PATH}` in a job's args. The spec keeps the reference, never a value.

The spec goes to the database, to logs and to other replicas; so a reference is resolved only when a body starts.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from scheduler.core.errors import SoloistError

LARGEST_FILE = 64 * 1024
_SECRET_NAME = re.compile(r"(?:^|_)(?:password|passwd|secret|token|api_?key|private_?key)$")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# What cannot be anything but a secret, under whatever name: a password in a URL (a place for one, as in
# `://app:{password}@` or `://app:***@`, is none), and the keys and tokens that announce themselves.
_LIKE_SECRET = re.compile(
    r"""://[^\s/:@]*:(?!\$?\{[^\s{}@]*\}@|<[^\s<>@]*>@|\*+@)[^\s/]+@
    |(?<![A-Za-z0-9])(?:
        (?:AKIA|ASIA)[A-Z0-9]{12}
        |(?:gh[opsur]_|github_pat_|xox[abeoprs]-|[rs]k_live_)[A-Za-z0-9_-]{6}
    )
    |-----BEGIN\ [A-Z0-9 ]{0,40}PRIVATE\ KEY""",
    re.VERBOSE,
)


class UnresolvedReference(SoloistError):
    """A reference leads nowhere. The message names the argument and the reference, never a value."""

    exit_code = 3


def is_reference(value: object) -> bool:
    """Whether `value` is `{env: NAME}` or `{file: PATH}`: exactly that one key, and a text."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return False
    ((key, target),) = value.items()
    return key in ("env", "file") and isinstance(target, str)


def almost_reference(value: object) -> bool:
    """Whether `value` looks as if a reference was meant: both keys, a slip in one, or something else than a text."""
    if not isinstance(value, Mapping) or not 1 <= len(value) <= 2 or is_reference(value):
        return False
    return all(difflib.get_close_matches(str(key), ("env", "file"), n=1, cutoff=0.6) for key in value)


def resolve_args(args: Mapping[str, Any], root: Path | None = None) -> dict[str, Any]:
    """A copy of `args` with every reference replaced by its text. Raises UnresolvedReference.

    `root`: where relative `{file: …}` paths begin (the folder of the callables); None takes the working directory. One
    newline at the end of a file is dropped, as editors and `kubectl create secret` add it.
    """
    return {name: _resolved(value, name, root) for name, value in args.items()}


def plain_secrets(args: Mapping[str, Any]) -> Iterator[tuple[str | int, ...]]:
    """Paths of plain texts that are secrets: by their key's name (`db_password`, `apiKey`, …) or by what they are."""
    for name, value in args.items():
        yield from _plain(value, (name,), secret=_named_like_secret(name))


def _plain(value: object, path: tuple[str | int, ...], *, secret: bool) -> Iterator[tuple[str | int, ...]]:
    # a reference is a mapping like another: what it names is looked at, for somebody may put the secret itself there
    if isinstance(value, str) and (secret or _LIKE_SECRET.search(value)):
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
