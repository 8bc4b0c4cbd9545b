"""What a migration's Python file is for: to run the plain .sql file beside it."""

from __future__ import annotations

from pathlib import Path

from alembic import op


def run_beside(script: str) -> None:
    """Run (or, with `--sql`, print) the .sql file of the same name, as it is: no binds, no escaping."""
    text = Path(script).with_suffix(".sql").read_text(encoding="utf-8")
    context = op.get_context()
    if context.as_sql:
        context.impl.static_output(text)
        return
    assert context.connection is not None
    context.connection.connection.cursor().execute(text)
