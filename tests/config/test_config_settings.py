"""Settings: the environment, flags over it, and errors that name the variable."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from scheduler.config.settings import load_settings
from scheduler.core.errors import ConfigInvalid


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.upper().startswith("SOLOIST_") or name.upper() == "SENTRY_DSN":
            monkeypatch.delenv(name)


def test_defaults() -> None:
    settings = load_settings(default_replica="host-7")
    assert settings.database_url is None
    assert (settings.jobs, settings.root) == (Path("jobs.yaml"), None)
    assert settings.replica == "host-7"
    assert (settings.seats, settings.lease, settings.drain, settings.clock_offset) == (16, 15.0, 25.0, 0.0)
    assert settings.sentry_dsn is None


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {
        "SOLOIST_DATABASE_URL": "postgresql://u:hunter2@h/d",
        "SOLOIST_JOBS": "/etc/soloist/jobs.yaml",
        "SOLOIST_ROOT": "/app",
        "SOLOIST_REPLICA": "pod-1",
        "SOLOIST_SEATS": "250",
        "SOLOIST_LEASE": "1m",
        "SOLOIST_DRAIN": "500ms",
        "SOLOIST_CLOCK_OFFSET": "-2.5",
        "SENTRY_DSN": "https://hunter2@example.com/1",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    settings = load_settings(default_replica="host-7")
    assert settings.database_url == values["SOLOIST_DATABASE_URL"]
    assert settings.sentry_dsn == values["SENTRY_DSN"]
    assert (settings.jobs, settings.root) == (Path("/etc/soloist/jobs.yaml"), Path("/app"))
    assert settings.replica == "pod-1"
    assert (settings.seats, settings.lease, settings.drain, settings.clock_offset) == (250, 60.0, 0.5, -2.5)
    assert "hunter2" not in repr(settings)
    assert "hunter2" not in str(settings)


def test_flags_win_and_absent_flags_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOLOIST_SEATS", "3")
    monkeypatch.setenv("SOLOIST_REPLICA", "from-env")
    settings = load_settings(default_replica="d", seats=None, replica="from-flag", lease="20s", sentry_dsn="x")
    assert (settings.seats, settings.replica, settings.lease, settings.sentry_dsn) == (3, "from-flag", 20.0, "x")


def test_an_empty_variable_is_an_unset_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOLOIST_DATABASE_URL", "")
    monkeypatch.setenv("SENTRY_DSN", "")
    settings = load_settings()
    assert settings.database_url is None
    assert settings.sentry_dsn is None


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("SOLOIST_SEATS", "0", "SOLOIST_SEATS: should be greater than or equal to 1"),
        ("SOLOIST_SEATS", "1001", "SOLOIST_SEATS: should be less than or equal to 1000"),
        ("SOLOIST_SEATS", "many", "SOLOIST_SEATS: should be a valid integer"),
        ("SOLOIST_LEASE", "15", "SOLOIST_LEASE: '15' has no unit: write 15s for seconds"),
        ("SOLOIST_LEASE", "500ms", "SOLOIST_LEASE: should be greater than or equal to 1"),
        ("SOLOIST_DRAIN", "1:30", "SOLOIST_DRAIN: '1:30' is not a duration"),
        ("SOLOIST_CLOCK_OFFSET", "nan", "SOLOIST_CLOCK_OFFSET: should be a finite number"),
    ],
)
def test_wrong_values_name_the_variable(monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigInvalid) as caught:
        load_settings()
    assert str(caught.value).startswith(said)


def test_every_wrong_value_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOLOIST_SEATS", "0")
    monkeypatch.setenv("SOLOIST_LEASE", "0s")
    with pytest.raises(ConfigInvalid) as caught:
        load_settings()
    assert len(caught.value.problems) == 2


def test_settings_do_not_change() -> None:
    settings = load_settings()
    with pytest.raises(ValidationError):
        settings.seats = 3  # type: ignore[misc]
