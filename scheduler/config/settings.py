"""Settings of one process, from the environment; flags of the command line override them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from scheduler.core.duration import parse_duration
from scheduler.core.errors import ConfigInvalid, Problem

SCHEMA = "soloist"
"""The database schema; not a setting, so that two deployments in one database cannot half share it by mistake."""

_DSN = "SENTRY_DSN"
_INIT_NAMES = {"sentry_dsn": _DSN}


def _duration(value: Any) -> Any:
    return parse_duration(value) if isinstance(value, str) else value


class Settings(BaseSettings):
    """Each field is `SOLOIST_<NAME>` in the environment, but for SENTRY_DSN.

    database_url   PostgreSQL; None: an embedded server, for development on one host
    direct_database_url   the same database, past any pooler: for locks and notifications
    jobs           the jobs file
    root           the folder in which the callables of the jobs file are found; None: the folder of the file
    replica        this process's name
    seats          attempts at once, 1 to 1000
    lease, drain   seconds (`15s` in the environment); how long a claim holds, how long a shutdown waits
    clock_offset   seconds added to the clock, for tests
    """

    model_config = SettingsConfigDict(env_prefix="SOLOIST_", env_ignore_empty=True, frozen=True, extra="forbid")

    database_url: str | None = Field(default=None, repr=False)
    direct_database_url: str | None = Field(default=None, repr=False)
    jobs: Path = Path("jobs.yaml")
    root: Path | None = None
    replica: str = Field(default="replica", min_length=1, max_length=200)
    seats: int = Field(default=16, ge=1, le=1000)
    lease: Annotated[float, BeforeValidator(_duration)] = Field(default=15.0, ge=1, le=3600)
    drain: Annotated[float, BeforeValidator(_duration)] = Field(default=25.0, ge=0, le=86400)
    clock_offset: float = Field(default=0.0, allow_inf_nan=False)
    sentry_dsn: str | None = Field(default=None, repr=False, validation_alias=_DSN)


def load_settings(*, default_replica: str = "replica", **overrides: Any) -> Settings:
    """The environment, and over it those `overrides` (by field name) that are not None: the flags that were given.

    `default_replica`: the name where neither says one; the caller knows host and process.
    Raises ConfigInvalid that names each variable. Secrets are not quoted in it.
    """
    given = {_INIT_NAMES.get(name, name): value for name, value in overrides.items() if value is not None}
    try:
        settings = Settings(**given)
    except ValidationError as error:
        raise ConfigInvalid(tuple(_problem(detail) for detail in error.errors(include_url=False))) from None
    if "replica" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"replica": default_replica})


def _problem(detail: ErrorDetails) -> Problem:
    name = str(detail["loc"][0])
    variable = name if name == _DSN else f"SOLOIST_{name.upper()}"
    said = detail.get("ctx", {}).get("error") if detail["type"] == "value_error" else None
    return Problem("environment", 0, 0, variable, str(said or detail["msg"].removeprefix("Input ")))
