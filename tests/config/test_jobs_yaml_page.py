"""docs/jobs-yaml.md and docs/jobs.schema.json: every key with its default, as the models have them, and examples."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduler.config.jobs_file import parse
from scheduler.config.models import DefaultsSection, FileSection, JobSection
from scheduler.config.schema import default_of, jobs_schema, keys_of, section_of
from scheduler.config.schema_words import WORDS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "jobs-yaml.md").read_text(encoding="utf-8")


def test_the_schema_in_docs_is_that_of_the_models() -> None:
    """After a change of the models: `soloist schema > docs/jobs.schema.json`."""
    assert json.loads((DOCS / "jobs.schema.json").read_text(encoding="utf-8")) == jobs_schema()


def test_every_key_of_the_schema_is_described_and_has_a_shape() -> None:
    keys = {*all_keys(FileSection, "file"), *all_keys(JobSection, "job")}
    assert keys == set(WORDS)
    shapes = jobs_schema()["$defs"]["job"]["properties"]
    for name, shape in shapes.items():
        assert {"type", "enum", "anyOf", "const"} & set(shape), f"nothing is known of {name}"
    assert shapes["timeout"]["default"] == "none"
    assert shapes["retry"]["properties"]["backoff"]["default"] == "1m"


def all_keys(kind: type, name: str) -> Iterator[str]:
    """`job.retry`, `retry.attempts`: the names under which keys are described."""
    for key, field in keys_of(kind):
        yield f"{name}.{key}"
        section = section_of(field)
        if section is not None and section is not DefaultsSection:
            yield from all_keys(section, key)


def told(heading: str) -> dict[str, str]:
    """Key -> default, of the table below a heading."""
    below = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([a-z_.]+)` \| (.*?) \| .+ \|$", below.replace("| |", "|  |"), re.MULTILINE)
    return {key: default.strip().strip("`") for key, default in rows}


def known(keys: Any) -> dict[str, str]:
    return dict(_known(keys))


def _known(keys: Any) -> Iterator[tuple[str, str]]:
    for key, field in keys:
        section = section_of(field)
        if section is not None:
            yield key, ""
            if section is not DefaultsSection:
                yield from ((f"{key}.{inner}", default) for inner, default in _known(keys_of(section)))
        else:
            default = default_of(field)
            empty = default in (None, "") or field.is_required()
            shown = default if isinstance(default, str) else json.dumps(default)
            yield key, "required" if field.is_required() else "" if empty else shown


def test_the_files_own_keys() -> None:
    assert told("The file") == known(keys_of(FileSection))


def test_a_jobs_own_keys() -> None:
    shared = DefaultsSection.model_fields
    own = [(key, field) for key, field in keys_of(JobSection) if key not in shared]
    assert told("A job") == known(own)


def test_the_keys_that_defaults_may_have() -> None:
    assert told("What a job says, or `defaults` for it") == known(keys_of(DefaultsSection))


@pytest.mark.parametrize("block", re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
def test_examples_are_read(block: str) -> None:
    whole = "\nversion: 1" in f"\n{block}"
    text = block if whole else "version: 1\njobs:\n  j:\n" + re.sub(r"(?m)^", "    ", block)
    assert parse(text.rstrip().encode()).jobs


@pytest.mark.parametrize(
    "word", ["gap", "first", "second", "forward", "back", "--until", "--days", "--exit-code", "--strict"]
)
def test_words_of_the_commands_are_explained(word: str) -> None:
    assert f"`{word}`" in PAGE
