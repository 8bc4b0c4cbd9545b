"""`soloist schema`: the jobs file's JSON Schema, for editors."""

from __future__ import annotations


def schema() -> None:
    """Print the JSON Schema of the jobs file, for editors (docs/jobs.schema.json is the same)."""
    from scheduler.cli.output import emit_json
    from scheduler.config.schema import jobs_schema

    emit_json(jobs_schema())
