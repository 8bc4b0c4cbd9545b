"""`soloist trigger`: a run now, because a person wants one."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from scheduler.cli.options import Format, Output, person

if TYPE_CHECKING:
    from scheduler.core.model import SkipReason, Status

POLL = 0.5  # seconds between two looks at a run that is waited for


def parse_payload(text: str) -> dict[str, Any]:
    """A JSON object that PostgreSQL can store."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except ValueError as error:
        raise typer.BadParameter(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise typer.BadParameter('must be a JSON object, e.g. {"day": "2026-11-29"}')
    if "\0" in (flat := "".join(_texts(value))) or any("\ud800" <= letter <= "\udfff" for letter in flat):
        raise typer.BadParameter("PostgreSQL cannot store the characters U+0000 and U+D800 to U+DFFF")
    return value


def parse_key(text: str) -> str:
    """An idempotency key: what an index can hold and a table can show."""
    if not 1 <= len(text) <= 200 or not text.isprintable():
        raise typer.BadParameter("must be 1 to 200 printable characters")
    return text


Job = Annotated[str, typer.Argument(help="The job's name.", metavar="JOB")]
Payload = Annotated[
    dict[str, Any] | None,
    typer.Option("--payload", parser=parse_payload, help="JSON object: the run's ctx.payload.", metavar="JSON"),
]
Key = Annotated[
    str | None,
    typer.Option("--key", parser=parse_key, help="Idempotency key: the same key makes one run.", metavar="KEY"),
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for the end, and exit with its code: 0, 1, 6 or 7.")]


def trigger(
    job: Job, payload: Payload = None, key: Key = None, wait: Wait = False, output: Output = Format.TABLE
) -> None:
    """Ask for a run of a job now. Any live replica takes it; beside an active run of the job it waits its turn."""
    from scheduler.cli.database import opened
    from scheduler.cli.failures import say
    from scheduler.cli.output import emit, field
    from scheduler.config.settings import load_settings

    with opened(load_settings()) as database:
        row = _create(database.url, job, payload, key)
        if row["payload_ignored"]:
            say(
                f"run {row['id']} has this key already, with another payload: the one given now is not used "
                f"(`soloist runs show {row['id']}` shows its own; another --key makes another run)"
            )
        code = _wait_for(database.url, row) if wait else 0
    emit([row], [field("id"), field("status")], output)
    raise typer.Exit(code)


def _create(database_url: str, job: str, payload: dict[str, Any] | None, key: str | None) -> dict[str, Any]:
    from scheduler.cli.names import unknown_job
    from scheduler.core.errors import NotFound
    from scheduler.core.model import Trigger
    from scheduler.runner.clock import SystemClock, new_id
    from scheduler.store.claims import Request, create_run
    from scheduler.store.history import read_present_jobs
    from scheduler.store.visit import patiently, visit, visit_session

    id_ = new_id()
    request = Request(
        id=id_,
        job=job,
        run_key=f"manual:{key if key is not None else id_.hex}",
        trigger=Trigger.MANUAL,
        triggered_by=person(),
        payload=payload,
        action="trigger",
    )
    with visit_session(database_url, "trigger", SystemClock()) as session:
        try:
            made = patiently(lambda: create_run(session, request))
        except NotFound:
            with visit(database_url, "trigger") as connection:
                raise unknown_job(job, read_present_jobs(connection), "in the plan in force") from None
    status = str(made.status) if made.fresh else "existing"
    return {
        "id": made.id,
        "job": job,
        "run_key": request.run_key,
        "status": status,
        "payload_ignored": made.other_payload,
    }


def _wait_for(database_url: str, row: dict[str, Any]) -> int:
    """Poll the run until it has ended; its state becomes the row's. Returns the exit code."""
    from scheduler.cli.failures import say
    from scheduler.core.model import TERMINAL
    from scheduler.store.history import count_live, read_status
    from scheduler.store.visit import visit

    run_id: UUID = row["id"]
    pause = threading.Event()
    with visit(database_url, "trigger") as connection:
        nobody = "" if count_live(connection) else "; no replica is live, so it begins when one starts"
        say(f"waiting for run {run_id}{nobody}")
        while (found := read_status(connection, run_id))[0] not in TERMINAL:
            pause.wait(POLL)
    row["status"] = str(found[0])
    return exit_code(*found)


def exit_code(status: Status, skip_reason: SkipReason | None) -> int:
    """The exit code that stands for how a run ended. What its own function skipped is in order."""
    from scheduler.core.model import SkipReason, Status

    if status is Status.SUCCEEDED or skip_reason is SkipReason.JOB:
        return 0
    return {Status.CANCELLED: 6, Status.TIMED_OUT: 7}.get(status, 1)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in _texts(part)]
    return [text for item in value for text in _texts(item)] if isinstance(value, list) else []


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
