"""`call: jobs.registry:build` becomes a function. Only packages and modules of one folder, the root, are imported.

Who may write the jobs file must not be able to run whatever happens to be installed (`os:system`). The root is the
folder of the file, or the one that SOLOIST_ROOT names where the file is mounted by itself.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import os
import re
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import reduce
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from scheduler.config.arguments import CallInvalid, bind_args, check_args

_IMPORTING = threading.RLock()
_LOADED: WeakKeyDictionary[ModuleType, tuple[int, int]] = WeakKeyDictionary()
"""The modules' files as they were when they were loaded here: an edit of one is seen by a new process alone."""
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_STDLIB = Path(os.__file__).parent
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_CALL = re.compile(rf"(?P<module>{_NAME}(?:\.{_NAME})*):(?P<function>{_NAME}(?:\.{_NAME})*)")


__all__ = [
    "CallInvalid",
    "bind_args",
    "check_args",
    "find_function",
    "load_module",
    "resolve",
    "split_call",
    "staleness",
]


def split_call(call: str) -> tuple[str, str]:
    """("pkg.mod", "func") of `pkg.mod:func`. Raises CallInvalid; imports nothing."""
    shape = _CALL.fullmatch(call)
    if shape is None:
        raise CallInvalid(f"{call[:80]!r} is not package.module:function, e.g. jobs.registry:build")
    return shape["module"], shape["function"]


def resolve(call: str, root: Path) -> Callable[..., Any]:
    """The function that `call` names. `root`: the folder to look in, put first on `sys.path`.

    Raises CallInvalid that says what is missing, or what the import raised and where in the user's file.
    """
    module, function = split_call(call)
    return find_function(load_module(module, root), function)


def load_module(name: str, root: Path) -> ModuleType:
    """Import `name` from below `root`; one that is imported already is not imported again. Raises CallInvalid.

    One thread at a time: `importlib.invalidate_caches` raises KeyError when two do it together, and the path is shared.
    """
    with _IMPORTING:
        return _load_module(name, root.resolve())


def _load_module(name: str, root: Path) -> ModuleType:
    top = name.partition(".")[0]
    if not _lies_in(root, top):
        raise CallInvalid(_not_in_root(top, root))
    _put_first(str(root))
    _refuse_foreign(top, root)
    if name not in sys.modules:
        importlib.invalidate_caches()
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise CallInvalid(_import_raised(name, error, root)) from None
        raise CallInvalid(_no_such_module(error.name, root)) from None
    except (Exception, SystemExit) as error:
        raise CallInvalid(_import_raised(name, error, root)) from None
    _refuse_foreign(top, root)
    stamp = _stamp(module)
    if stamp is not None and isinstance(module, ModuleType):  # it may have put anything in its own place
        _LOADED.setdefault(module, stamp)
    return module


def staleness(module: ModuleType) -> str:
    """What to add to a complaint about a module whose file was edited since; else nothing."""
    loaded = _LOADED.get(module) if isinstance(module, ModuleType) else None
    if loaded is None or _stamp(module) in (None, loaded):
        return ""
    return f"; {module.__name__} was edited since this process loaded it: a restart takes the new code"


def _stamp(module: ModuleType) -> tuple[int, int] | None:
    with suppress(OSError, TypeError):
        status = os.stat(module.__file__ or "")
        return status.st_mtime_ns, status.st_size
    return None


def find_function(module: ModuleType, dotted: str) -> Callable[..., Any]:
    """The callable `dotted` of `module`. Raises CallInvalid."""
    try:
        found = reduce(getattr, dotted.split("."), module)
    except AttributeError:
        named = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
        what = _missing(f"no function {dotted!r} in {module.__name__}", dotted, named)
        raise CallInvalid(f"{what}{staleness(module)}") from None
    if not callable(found):
        kind = type(found).__name__
        raise CallInvalid(f"{module.__name__}:{dotted} is of type {kind}, not a function{staleness(module)}")
    return found


def _put_first(folder: str) -> None:
    """Threads import at the same time, so the folder is never away from the path for a moment."""
    if sys.path[:1] != [folder]:
        sys.path.insert(0, folder)
        sys.path[:] = list(dict.fromkeys(sys.path))


def _refuse_foreign(top: str, root: Path) -> None:
    """A package of this name from elsewhere (the standard library, site-packages) must not run in its place."""
    module = sys.modules.get(top)
    if module is None:
        return
    places = [module.__file__] if getattr(module, "__file__", None) else list(getattr(module, "__path__", []))
    if not any(place is not None and Path(place).resolve().is_relative_to(root) for place in places):
        raise CallInvalid(f"another module named {top!r} is loaded already, not the one in {root}: rename it")


def _lies_in(folder: Path, top: str) -> bool:
    return (folder / top).is_dir() or (folder / f"{top}.py").is_file()


def _not_in_root(top: str, root: Path) -> str:
    """There is no such package in the root; where else it is, and what that means."""
    what = _missing(f"no package or module {top!r} in {root}", top, _modules_in(root))
    if _lies_in(Path.cwd(), top):
        return f"{what}; there is one in the working directory: start with --root . (or SOLOIST_ROOT={Path.cwd()})"
    spec = _found_by_import(top)
    if spec is None:
        return what if "did you mean" in what else f"{what}; --root DIR (or SOLOIST_ROOT) names another folder"
    folder = next((Path(place).parent for place in spec.submodule_search_locations or [spec.origin or ""]), Path())
    if not folder.is_absolute() or _INSTALLED.intersection(folder.parts) or folder.is_relative_to(_STDLIB):
        return f"{what}; the installed {top!r} is not called: put a function that calls it into a module there"
    return f"{what}; there is one in {folder}: start with --root {folder} (or SOLOIST_ROOT)"


def _found_by_import(top: str) -> ModuleSpec | None:
    """What an import would find. A finder of somebody else's may raise anything; then nothing is said of it."""
    with suppress(Exception):
        return importlib.util.find_spec(top)
    return None


def _no_such_module(name: str, root: Path) -> str:
    parent, _, last = name.rpartition(".")
    folder = root.joinpath(*parent.split(".")) if parent else root
    known = [f"{parent}.{found}" if parent else found for found in _modules_in(folder)]
    if name in known:
        return (
            f"no module {name!r}: another module {name.partition('.')[0]!r} is found first, because the folder of that "
            f"name in {root} has no __init__.py: add one"
        )
    return _missing(f"no module {name!r}", name if parent else last, known)


def _modules_in(folder: Path) -> list[str]:
    """Names of the modules and packages of a folder, as an import would know them."""
    if not folder.is_dir():
        return []
    found = [path.stem for path in folder.glob("*.py")]
    found += [path.name for path in folder.iterdir() if path.is_dir() and next(path.glob("*.py"), None)]
    return sorted(name for name in found if re.fullmatch(_NAME, name) and not name.startswith("__"))


def _missing(what: str, wanted: str, known: Iterable[str]) -> str:
    names = sorted(known)
    near = difflib.get_close_matches(wanted, names, n=1, cutoff=0.6)
    if near:
        return f'{what} (did you mean "{near[0]}"?)'
    shown = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
    return f"{what} (there are: {shown})" if names else f"{what} (there is none)"


def _import_raised(name: str, error: BaseException, root: Path) -> str:
    place = _place(error, root)
    first_line = str(error.msg if isinstance(error, SyntaxError) else error).partition("\n")[0]
    text = f": {first_line[:200]}" if first_line else ""
    return f"importing {name} raised {type(error).__name__}{text}{f' ({place})' if place else ''}"


def _place(error: BaseException, root: Path) -> str | None:
    """`jobs/registry.py:3`: the last of the user's own lines on the way to the exception."""
    places = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        places.append((error.filename, error.lineno))
    for file, line in reversed(places):
        path = Path(file)
        if path.is_absolute() and path.is_relative_to(root):
            return f"{path.relative_to(root)}:{line}"
    return None
