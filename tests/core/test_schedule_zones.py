"""Zones come from the pinned package, exactly as spelt, whatever the host says."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scheduler.core.zones import load_zone, tzdata_version

REFUSED = [
    ("Europe/Berlln", 'did you mean "Europe/Berlin"?'),
    ("europe/berlin", 'did you mean "Europe/Berlin"?'),
    ("EUROPE/LONDON", 'did you mean "Europe/London"?'),
    ("Berlin", 'did you mean "Europe/Berlin"?'),
    ("new york", 'did you mean "America/New_York"?'),
    ('"Europe/Berlin"', "without the quotes"),
    (" UTC", "without the quotes or blanks"),
    ("Local", "differs from host to host"),
    ("localtime", "differs from host to host"),
    ("../../etc/passwd", "unknown timezone"),
    ("/etc/localtime", "unknown timezone"),
    ("Europe/../Europe/Berlin", "unknown timezone"),
    ("Factory", "unknown timezone"),
    ("", "unknown timezone"),
    ("Europe", "unknown timezone"),
    ("x" * 5000, "…"),
    ("Europe/Berlin\0", "unknown timezone"),
]


@pytest.mark.parametrize(("name", "said"), REFUSED)
def test_refused_with_help(name: str, said: str) -> None:
    with pytest.raises(ValueError, match="timezone") as caught:
        load_zone(name)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 300


def test_the_version_is_the_packages() -> None:
    assert tzdata_version()[:2] == "20"


def test_a_known_zone() -> None:
    instant = datetime(2026, 7, 1, tzinfo=UTC)
    assert instant.astimezone(load_zone("Europe/London")).isoformat() == "2026-07-01T01:00:00+01:00"


PROGRAM = """
from datetime import UTC, datetime, timedelta
from scheduler.core.schedule import due, parse_at, parse_cron, tick_key
start = datetime(2026, 3, 28, tzinfo=UTC)
for zone in ("UTC", "Europe/London", "Asia/Kolkata"):
    cron = parse_cron("30 */5 * * *", zone)
    print([tick_key(cron, tick) for tick in due(cron, start, start + timedelta(days=2), 100).ticks])
print(parse_at("2026-11-29T03:00", "Europe/London"))
"""


def test_neither_the_hosts_zone_nor_its_zone_files_matter(tmp_path: Path) -> None:
    doctored = tmp_path / "Europe"
    doctored.mkdir()
    (doctored / "London").write_bytes(b"TZif no more")
    root = Path(__file__).parents[2]
    said = []
    for extra in ({"TZ": "UTC"}, {"TZ": "Asia/Tokyo"}, {"TZ": "America/New_York", "PYTHONTZPATH": str(tmp_path)}):
        environment = {**os.environ, **extra, "PYTHONPATH": str(root)}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert "2026-03-29T05:30:00[Europe/London]" in said[0]
    assert said[0] == said[1] == said[2]
