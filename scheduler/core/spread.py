"""Stable chance: a number from words, the same in each process and version, as `hash()` never is."""

from __future__ import annotations

import hashlib


def share(*words: str) -> float:
    """A number in [0, 1), even over many words; the words are kept apart, so ("ab", "c") is not ("a", "bc")."""
    digest = hashlib.sha256("\0".join(words).encode()).digest()
    return (int.from_bytes(digest[:8]) >> 11) / 2.0**53  # as many bits as a float holds, so that it stays below 1
