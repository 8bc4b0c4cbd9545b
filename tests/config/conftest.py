"""What the tests of jobs.yaml share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scheduler.config.jobs_file import parse
from scheduler.core.errors import ConfigInvalid

Messages = Callable[[str], list[str]]
Job = Callable[[str], str]


@pytest.fixture
def messages() -> Messages:
    """The problems of a file, as they are printed."""

    def read(text: str) -> list[str]:
        with pytest.raises(ConfigInvalid) as caught:
            parse(text.encode())
        return [str(problem) for problem in caught.value.problems]

    return read


@pytest.fixture
def job() -> Job:
    """A file with one job `j`, whose given lines begin at line 5."""

    def write(lines: str) -> str:
        body = "\n".join("    " + line for line in lines.strip().splitlines())
        return f"version: 1\njobs:\n  j:\n    call: jobs.x:y\n{body}\n"

    return write
