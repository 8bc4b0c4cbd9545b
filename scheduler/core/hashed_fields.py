"""`H` in a crontab field, as in Jenkins: a number made of the job's name. Jobs spread, and all replicas agree.

    H             one value of the field                    H H * * *      once a day
    H/15          every 15th, from a start in the first 15  H/15 * * * *
    H(0-29)       one value of the range                    H(0-29) 3 * * *
    H(0-29)/10    every 10th of the range

It is resolved where the line is read, so what is stored has plain numbers: it is a list of fixed times, not a star.
"""

from __future__ import annotations

import re

from scheduler.core.crontab import FIELDS, Field, split_fields
from scheduler.core.spread import share

_ITEM = re.compile(r"H(?:\((?P<first>[0-9A-Za-z]{1,9})-(?P<last>[0-9A-Za-z]{1,9})\))?(?:/(?P<step>[0-9]{1,4}))?")
_HIGHEST = {"day of month": 28, "day of week": 6}
"""Every month has 28 days, and 7 is 0 again."""


def resolve_hashed(expression: str, name: str) -> str:
    """The line with a number in the place of each `H`. Raises ValueError; whether it does is the same for each name."""
    if "H" not in expression:
        return expression
    pairs = zip(FIELDS, split_fields(expression), strict=True)
    return " ".join(",".join(_item(kind, text, item, name) for item in text.split(",")) for kind, text in pairs)


def _item(kind: Field, text: str, item: str, name: str) -> str:
    if not item.startswith("H"):
        return item
    shape = _ITEM.fullmatch(item)
    if shape is None:
        kind.refuse(text, f"{item!r} is not H, H/15, H({kind.low}-{_highest(kind)}) or that with /step")
    first, last = kind.low, _highest(kind)
    if shape["first"] is not None:
        first, last = kind.number(text, shape["first"].lower()), kind.number(text, shape["last"].lower())
    if last < first:
        kind.refuse(
            text, f"the range {first}-{last} runs backwards and does not wrap; write the lower first, H({last}-{first})"
        )
    if last > _highest(kind):
        why = "every month has 28 days and not all have more" if kind.name == "day of month" else "Sunday is 0 here"
        kind.refuse(text, f"`H` stays within {kind.low}-{_highest(kind)}: {why}")
    size, step = last - first + 1, None if shape["step"] is None else int(shape["step"])
    if step is None:
        return str(first + int(share("H", name, kind.name) * size))
    if not 0 < step <= size:
        kind.refuse(text, f"a step of {step} is not in 1-{size}, the length of its range; write H for one value")
    start = first + int(share("H", name, kind.name) * step)
    return ",".join(str(value) for value in range(start, last + 1, step))


def _highest(kind: Field) -> int:
    return _HIGHEST.get(kind.name, kind.high)
