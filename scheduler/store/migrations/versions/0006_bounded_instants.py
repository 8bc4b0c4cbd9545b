"""Instants that everybody can read; see 0006_bounded_instants.sql."""

from scheduler.store.sql_file import run_beside

revision = "0006_bounded_instants"
down_revision = "0005_purge"


def upgrade() -> None:
    """Run the file of the same name."""
    run_beside(__file__)
