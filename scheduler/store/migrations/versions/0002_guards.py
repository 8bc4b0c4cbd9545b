"""Presence and job locks; see 0002_guards.sql."""

from scheduler.store.sql_file import run_beside

revision = "0002_guards"
down_revision = "0001_initial"


def upgrade() -> None:
    """Run the file of the same name."""
    run_beside(__file__)
