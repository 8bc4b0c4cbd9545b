"""The daily registry of payments: one CSV file and one `payment_registry` row for each local day, exactly once.

A file and a table cannot commit together, so the order is: write the file under a temporary name and sync it; commit
its hash in the row, fenced, with `published_at` empty; rename; commit `published_at` and the run's success in one.

- Killed before the first commit: nothing is there but a part; the next attempt goes on from its checkpoint.
- Killed after it: the checkpoint names the finished part, and the next attempt only renames it. On another host, where
  the part is not, it builds the day anew.
- A zombie: both commits are fenced. Between them it may rename, but only a part whose hash was committed as its own,
  and its successor moves or removes that part first.

The registry is of the payments that were committed when the cursor passed. `overlap: skip` (the default) keeps two runs
of one day apart.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, CursorResult, Row, text

from jobs.day_sheet import DaySheet
from jobs.local_day import LocalDay
from jobs.part_file import Finished
from jobs.payment_table import CREATE_COMMAND
from jobs.wanted_day import wanted_day
from scheduler import Cancelled, Fatal, LeaseLost, Retry, RunContext

_BATCH = 2000  # rows held at a time: this, and not the day, sets the memory

_TABLES = text(
    "SELECT to_regclass('public.payment') IS NOT NULL AND to_regclass('public.payment_registry') IS NOT NULL"
)
_COUNT = text("SELECT count(*) FROM public.payment WHERE paid_at >= :start AND paid_at < :end")
_COUNT_TO = text(
    "SELECT count(*) FROM public.payment WHERE paid_at >= :start"
    " AND (paid_at, id) <= (CAST(:paid_at AS timestamptz), CAST(:id AS bigint))"
)
_DAY = text(
    "SELECT id, reference, paid_at, amount, currency, kind, payer FROM public.payment"
    " WHERE (paid_at, id) > (CAST(:paid_at AS timestamptz), CAST(:id AS bigint)) AND paid_at < :end"
    " ORDER BY paid_at, id"
)
# The engine's sessions may be cut when they are idle in a transaction; ours is, while a slow disk syncs a checkpoint.
_PATIENCE = text("SET LOCAL idle_in_transaction_session_timeout = '60s'")
# A replica frozen inside a commit holds the day's row: the server cuts it off, or its successor would wait for it.
_IMPATIENCE = text("SET LOCAL idle_in_transaction_session_timeout = '2s'")
_COMMIT_HASH = text(
    """
    INSERT INTO public.payment_registry AS r (day, zone, starts_at, ends_at, file, sha256, bytes, payments, rejects,
        rejects_file, rejects_sha256, totals, run_id, built_at)
    VALUES (:day, :zone, :start, :end, :file, :sha256, :bytes, :payments, :rejects,
        :rejects_file, :rejects_sha256, CAST(:totals AS jsonb), :run_id, clock_timestamp())
    ON CONFLICT (day) DO UPDATE SET
        (zone, starts_at, ends_at, file, sha256, bytes, payments, rejects, rejects_file, rejects_sha256, totals,
         run_id, built_at, published_at, revision)
      = (EXCLUDED.zone, EXCLUDED.starts_at, EXCLUDED.ends_at, EXCLUDED.file, EXCLUDED.sha256, EXCLUDED.bytes,
         EXCLUDED.payments, EXCLUDED.rejects, EXCLUDED.rejects_file, EXCLUDED.rejects_sha256, EXCLUDED.totals,
         EXCLUDED.run_id, EXCLUDED.built_at, NULL, r.revision + CAST(r.sha256 <> EXCLUDED.sha256 AS integer))
    """
)
_PUBLISHED = text(
    "UPDATE public.payment_registry SET published_at = clock_timestamp()"
    " WHERE day = :day AND run_id = :run_id AND sha256 = :sha256"
    " RETURNING day, file, sha256, payments, rejects, totals, revision"
)


class Place(NamedTuple):
    """Which day, and where it goes. `mark` makes the names of this attempt's parts its own."""

    day: LocalDay
    folder: Path
    mark: str

    @property
    def name(self) -> str:
        """What the day's files are called, before the dot."""
        return f"registry-{self.day.local_date.isoformat()}"

    @property
    def bounds(self) -> dict[str, str]:
        """What a checkpoint must agree on to be of this very day; `format` is that of the checkpoint itself."""
        return {
            "format": "1",
            "zone": self.day.zone.key,
            "start": self.day.start.isoformat(),
            "end": self.day.end.isoformat(),
        }


def build(
    ctx: RunContext,
    directory: Path | str = Path("var/registry"),
    zone: str = "Europe/London",
    day: date | str | None = None,
    max_rejects: int = 100,
    checkpoint_every: int = 50_000,
) -> dict[str, Any]:
    """Build `registry-<day>.csv` and its row; a payment that cannot be written goes to `registry-<day>.rejects.csv`.

    `day`: the local date in `zone` (an IANA name); by default that of a manual run's payload (`{"day": "2026-11-28"}`),
    else the one before the tick. `max_rejects`: more than so many set aside fail the run. `checkpoint_every`: payments.
    A day built again takes the place of the earlier file; `revision` counts how often it came out different.
    Raises Fatal (a missing table, a bad argument or payload, a day that is not over yet, too many rejects) and Retry
    (somebody removed the file under us).
    """
    place = _place(ctx, Path(directory), wanted_day(ctx, zone, day))
    with ctx.connect() as connection:
        if not connection.scalar(_TABLES):
            raise Fatal(f"the payment tables are missing: create them with `{CREATE_COMMAND}`")
    finished = _found_finished(ctx, place)
    if not finished:
        finished = _write(ctx, place, max_rejects, checkpoint_every)
        if not all(file.publish(place.folder) for file in finished):
            raise Retry(f"the parts of {place.name} vanished before they were published")
    with ctx.transaction() as connection:
        connection.execute(_IMPATIENCE)
        found = connection.execute(
            _PUBLISHED, {"day": place.day.local_date, "run_id": ctx.run_id, "sha256": finished[-1].sha256}
        ).one_or_none()
        if found is None:
            raise Retry(f"another run wrote the row of {place.day.local_date} meanwhile")
    result = found._asdict()
    return {**result, "day": result["day"].isoformat()}


def _place(ctx: RunContext, folder: Path, day: LocalDay) -> Place:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise Fatal(f"directory {folder} is not a directory") from None
    return Place(day, folder, f"{ctx.run_id.hex[-8:]}-{ctx.attempt}")


def _found_finished(ctx: RunContext, place: Place) -> list[Finished]:
    """What an earlier attempt committed and may not have published; now published. Empty: the day is to be written."""
    state = _checkpoint(ctx, place)
    if "finished" not in state:
        return []
    finished = [Finished(**file) for file in state["finished"]]
    if all(file.publish(place.folder) for file in finished):
        ctx.logger.info("published what attempt %s had finished", state["attempt"])
        return finished
    for file in finished:  # a damaged part must not stay: a zombie could still put it in place
        (place.folder / file.part).unlink(missing_ok=True)
    return []


def _checkpoint(ctx: RunContext, place: Place) -> dict[str, Any]:
    """The checkpoint if it is of this day in this zone; {} otherwise (somebody changed the arguments in between)."""
    state = ctx.checkpoint
    return state if isinstance(state, dict) and state.get("bounds") == place.bounds else {}


def _write(ctx: RunContext, place: Place, max_rejects: int, checkpoint_every: int) -> list[Finished]:
    """Write both parts and commit their hashes. The rejects come first: they are there before the registry is."""
    sheet = _open_sheet(ctx, place)
    with sheet:
        try:
            _fill(ctx, place, sheet, max_rejects, checkpoint_every)
            finished, facts = _finish(ctx, place, sheet)
            named = [{"part": f.part, "final": f.final, "sha256": f.sha256} for f in finished]
            state = {"bounds": place.bounds, "attempt": ctx.attempt, "finished": named}
            with ctx.transaction(checkpoint=state) as connection:
                connection.execute(_IMPATIENCE)
                connection.execute(_COMMIT_HASH, facts)
        except (LeaseLost, Fatal, Cancelled):  # nobody will go on from these parts
            sheet.discard()
            raise
    return finished


def _finish(ctx: RunContext, place: Place, sheet: DaySheet) -> tuple[list[Finished], dict[str, Any]]:
    """The files to publish, and the row to commit before that."""
    registry, rejects, size = sheet.finish()
    facts = {
        "day": place.day.local_date,
        "zone": place.day.zone.key,
        "start": place.day.start,
        "end": place.day.end,
        "file": registry.final,
        "sha256": registry.sha256,
        "bytes": size,
        "payments": sheet.payments,
        "rejects": sheet.rejects,
        "rejects_file": rejects.final,
        "rejects_sha256": rejects.sha256,
        "totals": json.dumps(sheet.totals.plain()),
        "run_id": ctx.run_id,
    }
    return [rejects, registry], facts


def _open_sheet(ctx: RunContext, place: Place) -> DaySheet:
    """A sheet that begins where the last checkpoint ended, or an empty one."""
    state = _checkpoint(ctx, place).get("writing")
    if state is not None:
        sheet = DaySheet(place.folder, place.name, place.mark, place.day.start)
        if sheet.resume(state) and _nothing_came_late(ctx, place, sheet):
            _sweep(place)
            ctx.logger.info("going on after %s payments of an earlier attempt", sheet.payments + sheet.rejects)
            return sheet
        ctx.logger.info("the earlier attempt's part is not here or is out of date: starting over")
        sheet.__exit__()
    sheet = DaySheet(place.folder, place.name, place.mark, place.day.start)
    sheet.begin()
    _sweep(place)
    return sheet


def _nothing_came_late(ctx: RunContext, place: Place, sheet: DaySheet) -> bool:
    """Whether the payments up to the checkpoint are as many as it took in."""
    paid_at, number = sheet.last
    with ctx.connect() as connection:
        known: int = connection.execute(
            _COUNT_TO, {"start": place.day.start, "paid_at": paid_at, "id": number}
        ).scalar_one()
    return known == sheet.payments + sheet.rejects


def _fill(ctx: RunContext, place: Place, sheet: DaySheet, max_rejects: int, checkpoint_every: int) -> None:
    with ctx.connect() as connection:
        connection.execute(_PATIENCE)
        total = connection.scalar(_COUNT, {"start": place.day.start, "end": place.day.end})
        saved = sheet.payments + sheet.rejects
        with _stream(connection, place, sheet) as result:
            for rows in result.partitions(_BATCH):
                ctx.raise_if_cancelled()
                _take(ctx, place, sheet, rows, max_rejects)
                done = sheet.payments + sheet.rejects
                ctx.progress(done, total, f"payments of {place.day.local_date}")
                if done - saved >= checkpoint_every:
                    ctx.save_checkpoint({"bounds": place.bounds, "attempt": ctx.attempt, "writing": sheet.state()})
                    saved = done


def _take(ctx: RunContext, place: Place, sheet: DaySheet, rows: Sequence[Row[Any]], max_rejects: int) -> None:
    aside = sheet.add(rows, place.day.zone)
    for number, reason in aside:
        ctx.logger.warning("payment %s set aside: %s", number, reason)
    if sheet.rejects > max_rejects:
        number, reason = aside[-1]
        raise Fatal(
            f"{sheet.rejects} payments cannot be written, the limit is {max_rejects}; payment {number}: {reason}"
        )


def _stream(connection: Connection, place: Place, sheet: DaySheet) -> CursorResult[Any]:
    """The rest of the day through a server-side cursor, to be closed (`yield_per` is ignored for plain SQL)."""
    paid_at, number = sheet.last
    after = {"paid_at": paid_at, "id": number, "end": place.day.end}
    return connection.execute(_DAY, after, execution_options={"stream_results": True})


def _sweep(place: Place) -> None:
    """Remove the parts of earlier attempts. A zombie among them goes on writing to a file without a name."""
    for part in place.folder.glob(f"{place.name}.*part-*"):
        if not part.name.endswith(f".part-{place.mark}"):
            part.unlink(missing_ok=True)
