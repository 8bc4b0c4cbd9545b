"""Names that were mistyped."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from scheduler.core.errors import NotFound


def unknown_job(name: str, known: Collection[str], where: str) -> NotFound:
    """The error for a job that is not there; with the name that was probably meant. `where`: "in jobs.yaml"."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        return NotFound(f'no job "{name}" {where} (did you mean "{near[0]}"?)')
    some = ", ".join(sorted(known)[:10]) + (", …" if len(known) > 10 else "")
    return NotFound(f'no job "{name}" {where} ({f"there are: {some}" if known else "there is none"})')
