"""How long a test waits, on a machine that may stand still for seconds."""

from __future__ import annotations

import time

LOOK = 1.0  # seconds that one look costs at the most


class Limit:
    """Seconds for a fact to come true. A pause of the machine costs one look: what is waited for stood still too."""

    def __init__(self, seconds: float) -> None:
        self._left, self._last = seconds, time.monotonic()

    def over(self) -> bool:
        """To be asked after each look in vain."""
        now = time.monotonic()
        self._left -= min(now - self._last, LOOK)
        self._last = now
        return self._left < 0
