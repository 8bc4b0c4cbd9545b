"""What is wrong with a text that is no YAML, in the words of the person who wrote it, and where."""

from __future__ import annotations

import re

from ruamel.yaml.error import MarkedYAMLError

Place = tuple[int, int]

_UNQUOTED = re.compile(r"(?:^ *(?:- +)?|[{,] *)[\w.-]+: +(?=[*@%`])")
_KEY = re.compile(r" *[\w.-]+$")


def explain(error: MarkedYAMLError, content: str, last: Place) -> tuple[Place, str]:
    """Line and column, from 1, and a message that quotes nothing of the file. `last`: where the last event began."""
    mark = error.problem_mark or error.context_mark
    place = last if mark is None else (mark.line + 1, mark.column + 1)
    lines = re.split(r"\r\n|\r|\n", content)
    line = lines[place[0] - 1] if place[0] <= len(lines) else ""
    before, rest = line[: place[1] - 1], line[place[1] - 1 :]
    if rest.startswith("\t") or line[: place[1]].endswith("\t"):
        return place, "a tab cannot indent YAML: use spaces"
    # `*/5 * * * *` begins as an alias, and is none only from its second star on: the value's beginning is what counts
    begins = [found.end() for found in _UNQUOTED.finditer(line) if found.end() < place[1]]
    if begins or rest[:1] in ("@", "`", "%") or "alias" in str(error.context):
        column = begins[-1] + 1 if begins else place[1]
        return (place[0], column), "quote the expression: a value that begins with *, @, % or ` needs quotes in YAML"
    nested = "mapping values are not allowed" in str(error.problem)
    column = len(before) - len(before.lstrip(" ")) + 1
    above = _line_above(lines, place[0])
    if above is not None and above[1] != column and (_KEY.match(before) if nested else _begins(error, before)):
        why = f"this line is indented differently from its neighbours: line {above[0]} begins at column {above[1]}"
        more = " (if this line goes on with the value above, quote that)" if nested else ""
        return (place[0], column), f"{why}, this one at column {column}{more}"
    if nested:
        return place, "a colon inside a value: quote the value (or the line before is indented wrongly)"
    return place, "not valid YAML: " + " ".join(str(part) for part in (error.context, error.problem) if part)


def _begins(error: MarkedYAMLError, before: str) -> bool:
    """Whether a block ends at the very beginning of a line, which therefore belongs to no block."""
    problem = str(error.problem)
    ends = "expected <block end>" in problem or ("<document start>" in problem and "<block mapping start>" in problem)
    return ends and not before.strip(" ")


def _line_above(lines: list[str], number: int) -> Place | None:
    """The nearest line above that says something, and the column where it begins."""
    for at in range(number - 1, 0, -1):
        text = lines[at - 1].lstrip(" ")
        if text and not text.startswith("#"):
            return at, len(lines[at - 1]) - len(text) + 1
    return None
