"""A job to watch: it does nothing but say that it ran."""

from __future__ import annotations

from scheduler import RunContext


def pulse(ctx: RunContext) -> None:
    """Print one line. With several replicas running, only one of them prints it for each tick."""
    print(f"pulse of {ctx.scheduled_at:%H:%M:%S}Z, attempt {ctx.attempt}")
