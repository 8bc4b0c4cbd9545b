"""The first schema; see 0001_initial.sql."""

from scheduler.store.sql_file import run_beside

revision = "0001_initial"
down_revision = None


def upgrade() -> None:
    """Run the file of the same name."""
    run_beside(__file__)
