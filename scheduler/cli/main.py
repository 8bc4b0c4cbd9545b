"""All commands in one place."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from scheduler.cli.audit import audit
from scheduler.cli.backfill import backfill
from scheduler.cli.check import check
from scheduler.cli.diff import diff
from scheduler.cli.explain import explain
from scheduler.cli.init import init
from scheduler.cli.jobs import jobs
from scheduler.cli.migrate import migrate
from scheduler.cli.next import next_ticks
from scheduler.cli.pauses import pause, resume
from scheduler.cli.purge import purge
from scheduler.cli.replicas import replicas
from scheduler.cli.run_one import execute
from scheduler.cli.runs import runs
from scheduler.cli.schema import schema
from scheduler.cli.serve import serve
from scheduler.cli.trigger import trigger

app = typer.Typer(
    help="Scheduled singleton jobs on PostgreSQL: every replica ticks, exactly one runs.",
    epilog="Exit codes: 0 ok, 1 job failed, 2 usage, 3 configuration invalid, 4 not found, 5 another replica has it, "
    "6 cancelled, 7 timed out, 8 database unreachable.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: rich takes longer to import than all the rest
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(serve)
app.command("exec")(execute)
app.command()(check)
app.command("next")(next_ticks)
app.command()(jobs)
app.command()(explain)
app.command()(diff)
app.command()(schema)
app.command()(init)
app.command()(trigger)
app.command()(pause)
app.command()(resume)
app.command()(backfill)
app.add_typer(runs, name="runs")
app.command()(audit)
app.command()(replicas)
app.command()(migrate)
app.command()(purge)


class _Command(TyperCommand):
    """Its usage names arguments as messages and the README do: JOB, where typer writes {JOB} of a required one."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


for _registered in (*app.registered_commands, *runs.registered_commands):
    _registered.cls = _Command


def _version(wanted: bool) -> None:
    if wanted:
        from scheduler import __version__

        print(f"soloist {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Scheduled singleton jobs on PostgreSQL: every replica ticks, exactly one runs."""
