"""How long finished runs are kept."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

_DAY = 86400.0


@dataclass(frozen=True, slots=True)
class Retention:
    """Seconds after a run's end. `failed` covers failed, timed_out, cancelled and lost: all that one may look into."""

    succeeded: float = 30 * _DAY
    failed: float = 180 * _DAY
    skipped: float = 7 * _DAY

    def to_dict(self) -> dict[str, float]:
        """JSON-able."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Retention:
        """The reverse of `to_dict`; what lacks has its default."""
        return cls(**{name: float(seconds) for name, seconds in plain.items()})
