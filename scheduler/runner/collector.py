"""What the garbage collector of a replica's own process need not walk over. Elsewhere it would keep what is not ours.

A full round stops every thread while it looks at all there is. What stays (modules, the plan) is taken out of it.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

NEVER = 1 << 30  # rounds of the middle generation before a full one


def rest_what_stays() -> None:
    """Take out what there is by now: runs come and go by the thousand, and each full round would walk over all of it
    (measured: a sixth of a short run's cost).
    """
    gc.collect()
    gc.freeze()


class FullRounds:
    """The full rounds of the collector, which may be put off. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._makers = 0
        self._usual = gc.get_threshold()

    @contextmanager
    def put_off(self) -> Iterator[None]:
        """Around the making of something large that stays: no full round meanwhile, and then it is taken out of them.

        A plan of 10,000 jobs in the making was walked over four times, up to a third of a second each, and what ticked
        then was late. A plan has no cycles (a test counts them), so the former one goes all the same. What fails leaves
        some behind, and is left to the collector as ever.
        """
        self._count(1)
        try:
            yield
            gc.freeze()
        finally:
            self._count(-1)

    def _count(self, more: int) -> None:
        with self._lock:
            if self._makers == 0:
                self._usual = gc.get_threshold()
            self._makers += more
            young, middle, full = self._usual
            gc.set_threshold(young, middle, NEVER if self._makers else full)
