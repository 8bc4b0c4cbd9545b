"""What fixed times do when clocks change. Lines with a star in minute or hour follow the clock, whatever is said."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class DstGap(StrEnum):
    """Fixed times that a gap swallows: `shift` runs them once, in the first minute after it; `skip` not that day."""

    SHIFT = "shift"
    SKIP = "skip"


class DstOverlap(StrEnum):
    """Fixed times in a repeated hour: in its `first` pass, or in `both` (the second's run key ends in `#2`)."""

    FIRST = "first"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Dst:
    """`dst:` of a job. The default is the rule of Debian's cron."""

    gap: DstGap = DstGap.SHIFT
    overlap: DstOverlap = DstOverlap.FIRST

    def to_dict(self) -> dict[str, Any]:
        """What differs from the default alone, so that the hash of a job that says nothing stays what it was."""
        return {name: getattr(self, name) for name in self.__slots__ if getattr(self, name) != getattr(DEBIAN, name)}


DEBIAN = Dst()


def dst_from_dict(plain: Any) -> Dst:
    """The reverse of `to_dict`. A word of a newer version means the default here."""
    known = plain if isinstance(plain, dict) else {}
    gap, overlap = known.get("gap"), known.get("overlap")
    return Dst(
        DstGap(gap) if gap in list(DstGap) else DEBIAN.gap,
        DstOverlap(overlap) if overlap in list(DstOverlap) else DEBIAN.overlap,
    )
