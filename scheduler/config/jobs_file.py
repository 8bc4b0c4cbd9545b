"""jobs.yaml → Plan. Every problem at once, with its line and column, in file order; never a traceback.

bytes → `yaml_reader` (values and places) → `models` (shape and types) → here: names, defaults, schedules in their
zones, contradictions, plain secrets → frozen JobSpecs. `check` looks at what they call.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from scheduler.config import calendar, complaints
from scheduler.config.models import JOB_NAME, DefaultsSection, FileSection, JobSection, RetentionSection
from scheduler.config.plan import Called, Plan, among, in_file_order, nearest_place
from scheduler.config.secrets import plain_secrets
from scheduler.config.yaml_reader import LARGEST, Document, read_yaml
from scheduler.core.dst import Dst
from scheduler.core.duration import format_duration
from scheduler.core.errors import ConfigInvalid, Problem
from scheduler.core.model import AfterCrash, Guard, JobSpec, LostContact, Misfire, Overlap, RetryPolicy
from scheduler.core.retention import Retention

__all__ = ["Draft", "Plan", "examine", "load", "parse", "read"]

Section = TypeVar("Section", bound=BaseModel)

MOST_PROBLEMS = 1000
_JOB_NAME = re.compile(JOB_NAME)
_NAME_RULE = "a job's name is 1 to 52 of a-z, 0-9 and -, and neither begins nor ends with -"


@dataclass(frozen=True, slots=True)
class Draft:
    """What could be made of a file: `plan` has those jobs alone whose own entry is sound; `problems`: in file order.

    `calls`: what the entries call, those of broken ones too: whoever mends one must not meet the next mistake then.
    Where there are problems, the plan is for looking further, and never for running.
    """

    plan: Plan
    problems: tuple[Problem, ...]
    calls: tuple[Called, ...] = ()

    def whole(self) -> Plan:
        """The plan. Raises ConfigInvalid where there is any problem."""
        if self.problems:
            raise ConfigInvalid(self.problems)
        return self.plan


def load(path: Path, root: Path | None = None) -> Plan:
    """Read the file. Raises ConfigInvalid, also when there is no such file or it cannot be read."""
    return read(path, root).whole()


def read(path: Path, root: Path | None = None) -> Draft:
    """Read the file as far as it can be. Raises ConfigInvalid where that is not at all.

    `root`: the folder of its callables; None: the file's own, which is that of its name and not of a link's target.
    """
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST + 1)
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
        if isinstance(error, FileNotFoundError):
            why += "; --jobs PATH (or SOLOIST_JOBS) names another, and `soloist init` writes a first one"
        raise ConfigInvalid((Problem(str(path), 0, 0, "", why),)) from None
    return examine(text, str(path), (root or path.parent).absolute())


def parse(text: bytes, name: str = "jobs.yaml", root: Path | None = None) -> Plan:
    """Read the bytes of a file called `name` in messages. `root`: the folder of its callables. Raises ConfigInvalid."""
    return examine(text, name, root or Path.cwd()).whole()


def examine(text: bytes, name: str, root: Path) -> Draft:
    """As `read`, of bytes that are there already. Raises ConfigInvalid where they cannot be read at all."""
    document = read_yaml(text, name)
    content_hash = hashlib.sha256(text).hexdigest()[:16]
    return _Composer(document, name).draft(content_hash, root)


class _Composer:
    """Makes a plan of a document and gathers the problems on the way."""

    def __init__(self, document: Document, name: str) -> None:
        self._value, self._content = document.value, document.content
        self._problems = list(document.problems)
        self._unread = {".".join(path) for path in document.unread}
        self._lengths = {len(path) for path in self._unread}
        places = {".".join(path): place for path, place in document.places.items()}
        self._places = MappingProxyType(places)
        self._name = name

    def draft(self, content_hash: str, root: Path) -> Draft:
        """The plan, as far as there is one, and the problems."""
        whole = self._whole()
        timezone = whole.timezone if whole else "UTC"
        defaults = whole.defaults if whole else DefaultsSection()
        self._refuse_lengths("defaults", defaults, _retry(defaults), _misfire(defaults))
        entries = self._value.get("jobs") if isinstance(self._value, dict) else None
        entries = entries if isinstance(entries, dict) else {}
        jobs = []
        for name, entry in entries.items():
            if len(self._problems) > MOST_PROBLEMS:
                break
            job = self._job(name, entry, defaults, timezone)
            if job is not None:
                jobs.append(job)
        problematic = sorted({problem.path for problem in self._problems})
        plan = Plan(
            version=1,
            timezone=timezone,
            jobs=tuple(job for job in jobs if not among(problematic, f"jobs.{job.name}")),
            retention=Retention(**(whole.retention if whole else RetentionSection()).model_dump()),
            content_hash=content_hash,
            root=root,
            content=self._content,
            name=self._name,
            places=self._places,
        )
        calls = (self._called(name, entry, problematic) for name, entry in entries.items())
        return Draft(plan, _most(in_file_order(self._problems)), tuple(one for one in calls if one is not None))

    def _called(self, name: str, entry: Any, problematic: list[str]) -> Called | None:
        """What the entry calls, where that key is sound, and with what, where that is known."""
        call = entry.get("call") if isinstance(entry, dict) else None
        if not isinstance(call, str) or among(problematic, f"jobs.{name}.call"):
            return None
        args = entry.get("args", {})
        # of single arguments that are wrong we know all the same that they are given
        known = isinstance(args, dict) and f"jobs.{name}.args" not in problematic
        return Called(name, call, args if known and "<<" not in entry and "<<" not in args else None)

    def _whole(self) -> FileSection | None:
        if not isinstance(self._value, dict):
            self._say("", "the file must be a mapping with the keys version and jobs")
            return None
        return self._section(FileSection, self._value, "")

    def _job(self, name: str, entry: Any, defaults: DefaultsSection, timezone: str) -> JobSpec | None:
        path = f"jobs.{name}"
        if _JOB_NAME.fullmatch(name) is None:
            self._say(path, _NAME_RULE)
        if not isinstance(entry, dict):
            self._say(path, "a job must be a mapping with at least the key call")
            return None
        if isinstance(entry.get("args"), dict):
            self._refuse_secrets(f"{path}.args", entry["args"])
        job = self._section(JobSection, entry, path)
        if job is None:
            return None
        return self._spec(name, job, defaults, timezone)

    def _spec(self, name: str, job: JobSection, defaults: DefaultsSection, timezone: str) -> JobSpec:
        path = f"jobs.{name}"
        given = _given(defaults) | _given(job)
        retry, misfire = _retry(defaults, job), _misfire(defaults, job)
        timezone = job.timezone or timezone
        for key in calendar.KEYS:
            given.pop(key, None)
        dst = Dst(**(_given(defaults.dst) | _given(job.dst)))
        schedule = calendar.read_schedule(job, name, timezone, dst, lambda key, why: self._say(f"{path}.{key}", why))
        spec = JobSpec(
            **(given | {"retry": retry, "misfire": misfire}), name=name, schedule=schedule, timezone=timezone
        )
        self._refuse_lengths(path, job, retry, misfire)
        self._refuse_contradictions(path, spec)
        return spec

    def _refuse_lengths(self, path: str, section: DefaultsSection, retry: RetryPolicy, misfire: Misfire) -> None:
        """Two lengths of which one leaves the other nothing to say; told where one of them is written."""
        backoff, longest = format_duration(retry.backoff), format_duration(retry.max)
        if retry.backoff > retry.max and (key := _first_of(section.retry, "backoff", "max")):
            why = f"backoff is {backoff} and max {longest}, so no wait would be longer than {longest}"
            self._say(f"{path}.retry.{key}", f"{why}: write max: {backoff} or more, or a shorter backoff")
        grace, within = format_duration(misfire.grace), format_duration(misfire.within)
        if misfire.grace > misfire.within and (key := _first_of(section.misfire, "grace", "within")):
            why = f"grace is {grace} and within {within}, but a tick that is late by less than grace runs in any case"
            self._say(f"{path}.misfire.{key}", f"{why}: write within: {grace} or more, or a shorter grace")

    def _refuse_contradictions(self, path: str, spec: JobSpec) -> None:
        if spec.after_crash is AfterCrash.FAIL and spec.retry.attempts > 1:
            key = "after_crash" if f"{path}.after_crash" in self._places else "retry"
            why = (
                f"after_crash: fail never starts a run twice, but retry.attempts is {spec.retry.attempts}: take one out"
            )
            self._say(f"{path}.{key}", why)
        self._refuse_contact_contradictions(path, spec)

    def _refuse_contact_contradictions(self, path: str, spec: JobSpec) -> None:
        """What protects a run, and what its body does when contact is lost, must not undo each other."""
        goes_on = spec.lost_contact is LostContact.CONTINUE
        if spec.guard is Guard.ADVISORY_LOCK and spec.overlap is Overlap.ALLOW:
            self._say(f"{path}.guard", "guard: advisory_lock lets one run at a time through: take out overlap: allow")
        if spec.guard is Guard.ADVISORY_LOCK and goes_on:
            why = "guard: advisory_lock stops the run when its lock is lost: take out lost_contact: continue"
            self._say(f"{path}.guard", why)
        if spec.after_crash is AfterCrash.FAIL and goes_on:
            why = "with lost_contact: continue two bodies may run at once, and after_crash: fail rules that out"
            self._say(f"{path}.lost_contact", why)

    def _refuse_secrets(self, path: str, args: dict[str, Any]) -> None:
        for parts in plain_secrets(args):
            where = ".".join([path, *(str(part) for part in parts)])
            self._say(where, "a secret must not stand in the file: write {env: NAME} or {file: PATH}")

    def _section(self, kind: type[Section], value: dict[str, Any], path: str) -> Section | None:
        try:
            return kind.model_validate(value)
        except ValidationError as error:
            for below, message in islice(complaints.explain(error, kind), MOST_PROBLEMS + 1):
                self._say(".".join(part for part in (path, below) if part), message)
            return None

    def _say(self, path: str, message: str) -> None:
        """Add a problem, unless what stands there could not even be read."""
        beginnings = (path[:length] for length in self._lengths if path[length : length + 1] in ("", "."))
        if self._unread.isdisjoint(beginnings):
            self._problems.append(Problem(self._name, *nearest_place(self._places, path), path, message))


def _most(problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """The first thousand: nobody reads more, and a hint for each of a million typos would take minutes."""
    if len(problems) <= MOST_PROBLEMS:
        return problems
    last = problems[MOST_PROBLEMS]
    more = Problem(last.file, last.line, last.column, "", "there are more problems from here on: mend these first")
    return (*problems[:MOST_PROBLEMS], more)


def _retry(*sections: DefaultsSection) -> RetryPolicy:
    """The later ones' keys over those of the earlier."""
    return RetryPolicy(**{key: value for section in sections for key, value in _given(section.retry).items()})


def _misfire(*sections: DefaultsSection) -> Misfire:
    return Misfire(**{key: value for section in sections for key, value in _given(section.misfire).items()})


def _first_of(section: BaseModel, *keys: str) -> str | None:
    """The first of the keys that the file itself has."""
    return next((key for key in keys if key in section.model_fields_set), None)


def _given(section: BaseModel) -> dict[str, Any]:
    """What the file itself says, without the models' own defaults; inner sections stay models."""
    return {name: getattr(section, name) for name in section.model_fields_set}
