"""`python -m jobs.load PATH... [--database URL]`: day files of the Online Retail data set into `payment`.

The database: `--database`, else SOLOIST_DATABASE_URL, else the embedded one of this folder, which `make run` makes.
Each file is one transaction. A file loaded again changes nothing. Exit codes: 0 ok, 1 a file is bad (the others are
loaded), 2 usage, 4 no such file, 8 database unreachable.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from sqlalchemy import Engine, NullPool, create_engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError

from jobs.online_retail import BadFile, read_payments
from jobs.payment_table import create_tables, insert_payments
from scheduler import SoloistError, open_database

_SHOWN = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m jobs.load", description="Load payments from invoice day files.")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="a day file, or a folder of them")
    parser.add_argument("--database", metavar="URL", help="default: SOLOIST_DATABASE_URL, or the embedded one")
    parser.add_argument("--schema-only", action="store_true", help="only create the tables")
    options = parser.parse_args(arguments)
    if not options.paths and not options.schema_only:
        parser.error("give a file to load, or --schema-only")
    try:
        files = _files(options.paths)
        with nullcontext(options.database) if options.database else open_database() as address:
            return _load_into(_engine(address), files)
    except ArgumentError:
        parser.error("the database's address is not like postgresql://user@host:5432/name")
    except FileNotFoundError as error:
        return _fail(f"{error.filename}: no such file, or no .csv in it", 4)
    except SoloistError as error:
        return _fail(str(error), error.exit_code)


def _load_into(engine: Engine, files: list[Path]) -> int:
    try:
        return _load(engine, files)
    except OperationalError as error:
        return _fail(f"cannot reach PostgreSQL at {_where(engine)}: {_first_line(error)}", 8)
    except DBAPIError as error:
        return _fail(f"PostgreSQL at {_where(engine)} refused: {_first_line(error)}", 1)


def _load(engine: Engine, files: list[Path]) -> int:
    with engine.begin() as connection:
        create_tables(connection)
    code = 0
    for path in files:
        try:
            payments = read_payments(path)
        except BadFile as error:
            more = len(error.problems) - _SHOWN
            shown = error.problems[:_SHOWN] + ([f"{path}: and {more} more"] if more > 0 else [])
            code = _fail("\n".join([*shown, f"{path}: nothing of this file was loaded"]), 1)
            continue
        with engine.begin() as connection:
            new = insert_payments(connection, payments)
        refunds = sum(p.kind == "refund" for p in payments)
        print(f"{path.name}: {len(payments)} payments, {refunds} of them refunds; {new} new")
    return code


def _files(paths: list[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        found = sorted(path.glob("*.csv")) if path.is_dir() else [path]
        if not found or not found[0].is_file():
            raise FileNotFoundError(2, "no such file", str(path))
        files += found
    return files


def _engine(address: str) -> Engine:
    url = make_url(address)
    if url.get_backend_name() not in ("postgresql", "postgres"):
        raise ArgumentError("not PostgreSQL")
    return create_engine(url.set(drivername="postgresql+psycopg"), poolclass=NullPool)


def _where(engine: Engine) -> str:
    """The address without user and password."""
    url = engine.url
    return f"{url.host or url.query.get('host') or 'the local socket'}:{url.port or 5432}/{url.database or ''}"


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).strip().splitlines()[0]


def _fail(message: str, code: int) -> int:
    print(message, file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
