"""Pauses end and are counted from; see 0004_pauses.sql."""

from scheduler.store.sql_file import run_beside

revision = "0004_pauses"
down_revision = "0003_cheaper_runs"


def upgrade() -> None:
    """Run the file of the same name."""
    run_beside(__file__)
