"""Scalars by the core schema of YAML 1.2, as far as JSON can hold them."""

from __future__ import annotations

import math
import re

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_DECIMAL = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_LONGEST_NUMBER = 300


class NotAllowed(ValueError):
    """A scalar that YAML knows and we do not take."""


def resolve_scalar(text: str, *, plain: bool) -> str | int | float | bool | None:
    """The value of a scalar; `plain`: written without quotes. Raises NotAllowed.

    NUL and lone surrogates (from escapes such as "\\0") are refused: PostgreSQL and JSON cannot hold them.
    """
    if _UNSTORABLE.search(text):
        raise NotAllowed("NUL and lone surrogates are not allowed in a text")
    if not plain:
        return text
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    return _number(text)


def _number(text: str) -> str | int | float:
    if _NOT_FINITE.fullmatch(text):
        raise NotAllowed(f"{text} is not a number that JSON can hold: quote it if it is a text")
    based, decimal, fraction = _BASED.fullmatch(text), _DECIMAL.fullmatch(text), _FLOAT.fullmatch(text)
    if not (based or decimal or fraction):
        return text
    if len(text) > _LONGEST_NUMBER:
        raise NotAllowed("the number is too long: quote it if it is a text")
    if based:
        return int(text, 0)
    if decimal:
        return int(text)
    number = float(text)
    if not math.isfinite(number):
        raise NotAllowed(f"{text} is too large a number")
    return number
