"""Secrets never leave as text, whatever carries them."""

from __future__ import annotations

import io
import json
import threading

import pytest
from sample_events import ended

from scheduler.core.events import DatabaseLost
from scheduler.core.model import Outcome, Status
from scheduler.core.redaction import Redaction, cut, printable
from scheduler.edges.logs import LogListener

CANARIES = {
    "GITHUB_TOKEN": "ghp-canary-one",
    "DB_PASSWORD": 'can"ary two/\\',
    "AWS_SECRET_ACCESS_KEY": "canary+three/==",
    "SIGNING_KEY": "-----BEGIN KEY-----\ncanary-four-line-of-a-key\n-----END KEY-----",
    "SOLOIST_DATABASE_URL": "postgresql://app:canary%40five@db.example:5432/app",
}
FRAGMENTS = [
    "canary-one",
    'can"ary',
    "can%22ary",
    "canary+three",
    "canary%2Bthree",
    "canary-four",
    "canary@five",
    "canary%40",
]


def leaks(text: str) -> list[str]:
    return [fragment for fragment in FRAGMENTS if fragment in text or json.dumps(fragment)[1:-1] in text]


def carriers() -> str:
    """Every canary as it stands, in a repr, in a URL and percent-encoded."""
    from urllib.parse import quote

    return " ".join(f"{value} {value!r} x={quote(value, safe='')}, canary@five" for value in CANARIES.values())


@pytest.mark.parametrize("form", ["plain", "json"])
def test_no_canary_in_any_line(form: str) -> None:
    stream = io.StringIO()
    listener = LogListener(stream, environment={**CANARIES, "SOLOIST_LOG": form})
    assert leaks(carriers()), "the canaries must be visible without masking"
    listener(
        ended(
            Status.FAILED,
            error_class=carriers(),
            error_text=carriers(),
            result={carriers(): [carriers(), {"deep": (carriers(),)}]},
            output_tail=carriers(),
            run_key=carriers(),
        )
    )
    listener(ended(Status.SUCCEEDED, Outcome.SUCCEEDED, result=carriers()))
    listener(DatabaseLost(replica="r", room="keeper", error=carriers()))
    assert stream.getvalue().count("\n") == 3
    assert leaks(stream.getvalue()) == []
    assert "***" in stream.getvalue()


@pytest.mark.parametrize("before", range(1960, 2010))
def test_no_cut_leaves_half_a_secret(before: int) -> None:
    for form in ("plain", "json"):
        stream = io.StringIO()
        listener = LogListener(stream, environment={"A_TOKEN": "S3CR3T-S3CR3T", "SOLOIST_LOG": form})
        listener(ended(Status.FAILED, error_text="x" * before + "S3CR3T-S3CR3T" * 3))
        listener(ended(Status.FAILED, error_text="x" * (before - 1720) + "S3CR3T-S3CR3T" * 3))
        assert "S3" not in stream.getvalue()


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("postgresql://u:p@h/db", "postgresql://u:***@h/db"),
        ("postgresql://u:p@ss@h/db", "postgresql://u:***@h/db"),
        ("postgresql://u@h/db", "postgresql://u@h/db"),
        ("redis://:pw@h, amqp://a:b@c", "redis://:***@h, amqp://a:***@c"),
        ("https://token@h/1", "https://***@h/1"),
        ("http://h:8080/a?mail=x@y", "http://h:8080/a?mail=x@y"),
        ("host=h password=geheim user=u", "host=h password=*** user=u"),
        (r"password = 'a \' b' user=u", "password = *** user=u"),
        ("password authentication failed", "password authentication failed"),
        ("12:30: a@b", "12:30: a@b"),
    ],
)
def test_passwords_in_addresses(text: str, masked: str) -> None:
    assert Redaction({}).text(text) == masked


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("TOKEN", True),
        ("api_key", True),
        ("PGPASSWORD", True),
        ("SENTRY_DSN", True),
        ("AWS_ACCESS_KEY_ID", True),
        ("KEYBOARD", False),
        ("MONKEYS", False),
        ("TOKEN_FILE", False),
        ("COMPASS", False),
        ("HOME", False),
    ],
)
def test_which_names_mean_secrets(name: str, secret: bool) -> None:
    assert (Redaction({name: "some-value"}).text("a some-value b") == "a *** b") is secret


def test_short_values_are_no_secrets_and_long_ones_come_first() -> None:
    redaction = Redaction({"A_KEY": "true", "B_TOKEN": "abcdef", "C_TOKEN": "abcdefghi"})
    assert redaction.text("true abcdef abcdefghi") == "true *** ***"


def test_hostile_text_is_masked_in_linear_time() -> None:
    """Each of these took minutes with a pattern that backtracks."""
    redaction = Redaction(CANARIES)
    texts = [
        "a" * 300_000,
        "://" * 100_000,
        "://a:" * 60_000,
        "https://" * 40_000,
        "password=" * 30_000,
        "password='" * 30_000,
    ]
    done = threading.Event()

    def mask_all() -> None:
        for text in texts:
            redaction.text(text)
        done.set()

    threading.Thread(target=mask_all, daemon=True).start()
    assert done.wait(60)


def test_printable_and_cut() -> None:
    assert printable("a\tb\u2029\ud800é🙂") == "a\\tb\\u2029\\ud800é🙂"
    assert cut("x" * 2000) == "x" * 2000
    assert cut("x" * 2001) == "x" * 1981 + "… (2001 characters)"
    assert len(cut("x" * 9, 3)) <= 20
