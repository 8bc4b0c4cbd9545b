"""`soloist init`: a jobs file to begin with. No database."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

PathArgument = Annotated[
    Path, typer.Argument(help="The file, or the folder for a jobs.yaml.", metavar="PATH", show_default=False)
]


def init(path: PathArgument = Path("jobs.yaml")) -> None:
    """Write a commented jobs file, its schema for editors, and a function to call; overwrites nothing."""
    import json
    import shlex

    from scheduler.cli.failures import say
    from scheduler.config.schema import jobs_schema
    from scheduler.config.settings import load_settings
    from scheduler.config.starter import FUNCTION, SCHEMA, starter

    usual = load_settings().jobs
    path = path / "jobs.yaml" if path.is_dir() else path
    folder = path.parent
    own = (folder / "jobs").exists() or (folder / "jobs.py").exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(path, starter(with_function=not own))
        _write_unless_there(folder / SCHEMA, json.dumps(jobs_schema(), indent=2, ensure_ascii=False) + "\n")
        if not own:
            (folder / "jobs").mkdir()
            _write(folder / "jobs" / "__init__.py", "")
            _write(folder / "jobs" / "hello.py", FUNCTION)
    except FileExistsError as error:
        raise typer.BadParameter(f"{error.filename} is there already: it stays as it is", param_hint="PATH") from None
    except OSError as error:
        raise typer.BadParameter(f"{error.filename}: {error.strerror}", param_hint="PATH") from None
    if own:
        say(f"{folder / 'jobs'} is there already: the example in {path} is a comment")
    # what the other commands take without a word may be another file
    which = "" if path.absolute() == usual.absolute() else f" --jobs {shlex.quote(str(path))}"
    say(f"now: soloist check{which}, soloist next{which}, soloist serve{which}")


def _write(path: Path, text: str) -> None:
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
    print(path)


def _write_unless_there(path: Path, text: str) -> None:
    if not path.exists():
        _write(path, text)
