"""A calendar day in a zone, as the instants it begins and ends."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo


@dataclass(frozen=True, slots=True)
class LocalDay:
    """[local midnight, next local midnight): 23 or 25 hours when the clocks change.

    A midnight that does not exist is the instant of the change; one that comes twice is its first pass. So each
    instant lies in exactly one day, whatever the zone does.
    """

    local_date: date
    zone: ZoneInfo

    @classmethod
    def before(cls, instant: datetime, zone: ZoneInfo) -> LocalDay:
        """The day before the one that `instant` (aware) lies in."""
        return cls(instant.astimezone(zone).date() - timedelta(days=1), zone)

    @property
    def start(self) -> datetime:
        """The first instant, UTC."""
        return self._midnight(self.local_date)

    @property
    def end(self) -> datetime:
        """The first instant after it, UTC."""
        return self._midnight(self.local_date + timedelta(days=1))

    def _midnight(self, day: date) -> datetime:
        # zoneinfo reads a wall time in a gap (fold 0) with the offset before it: that is the instant of the change.
        return datetime.combine(day, time(), tzinfo=self.zone).astimezone(UTC)
