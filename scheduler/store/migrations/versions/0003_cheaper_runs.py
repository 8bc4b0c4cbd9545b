"""A run costs less; see 0003_cheaper_runs.sql."""

from scheduler.store.sql_file import run_beside

revision = "0003_cheaper_runs"
down_revision = "0002_guards"


def upgrade() -> None:
    """Run the file of the same name."""
    run_beside(__file__)
