"""Whether two bodies ever ran side by side, told from the lines that `effects.hold` writes."""

from __future__ import annotations

from replicas import Fleet


def bodies(fleet: Fleet, job: str) -> list[tuple[float, float, str]]:
    """(first line, last line, who) of each body of the job, in order of their beginnings; CLOCK_BOOTTIME."""
    spans: dict[str, tuple[float, float]] = {}
    for words in fleet.lines():
        if words[0] not in ("begin", "beat", "end") or words[1] != job:
            continue
        _, _, key, attempt, pid, at = words
        who, now = f"{key} attempt {attempt} pid {pid}", float(at)
        first, last = spans.get(who, (now, now))
        spans[who] = (min(first, now), max(last, now))
    return sorted((first, last, who) for who, (first, last) in spans.items())


def side_by_side(fleet: Fleet, job: str = "work") -> list[str]:
    """Each body that wrote a line after a later one had begun."""
    found, latest, owner = [], 0.0, ""
    for first, last, who in bodies(fleet, job):
        if first <= latest:
            found.append(f"{owner} still worked {latest - first:.3f} s after {who} had begun")
        if last > latest:
            latest, owner = last, who
    return found
