"""Each event as a sentence for a person, and how much attention it deserves."""

from scheduler.edges.words import faults, plans, runs
from scheduler.edges.words.wording import Said, instant, say

__all__ = ["Said", "faults", "instant", "plans", "runs", "say"]
