"""How far this machine's clock is from the database's, and what follows from that.

Ownership and due ticks are judged by the database's clock alone, so a wrong clock here does no harm by itself. It
shows that something is wrong with the machine, and jobs that ask it for the date would write wrong dates: above a
second it is said, and above half a minute this replica leaves new work to others.
"""

from __future__ import annotations

from scheduler.core.events import ClockAway, ClockRight
from scheduler.runner.room import Room
from scheduler.runner.seats import Seats

NOTABLE = 1.0  # seconds
INTOLERABLE = 30.0
WHY = "clock"


class ClockWatch:
    """`look` belongs to the keeper's thread; `claims` to any."""

    def __init__(self, room: Room, seats: Seats) -> None:
        self._room, self._seats = room, seats
        self._said = 0  # 0: right, 1: notable, 2: intolerable
        self.claims = True

    def look(self) -> None:
        """Judge the offset that was measured last, and say a change of it once. It is away where it surely is."""
        offset = self._room.clock.offset
        away = abs(offset) - self._room.clock.error
        grade = (away > NOTABLE) + (away > INTOLERABLE)
        if grade == self._said:
            return
        self._said, claimed = grade, self.claims
        self.claims = grade < 2
        name = self._room.owner.name
        if grade:
            self._room.bus.publish(ClockAway(replica=name, offset=offset, claims=self.claims))
        else:
            self._room.bus.publish(ClockRight(replica=name, offset=offset))
        if claimed and not self.claims:
            self._seats.shut(WHY)
        elif self.claims and not claimed:
            self._seats.reopen(WHY)
