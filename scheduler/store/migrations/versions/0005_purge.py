"""One rule for what a purge deletes; see 0005_purge.sql."""

from scheduler.store.sql_file import run_beside

revision = "0005_purge"
down_revision = "0004_pauses"


def upgrade() -> None:
    """Run the file of the same name."""
    run_beside(__file__)
