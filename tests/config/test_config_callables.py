"""`call` to a function: real packages in a folder, imported for real."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from scheduler.config.callables import CallInvalid, resolve

PACKAGE = {
    "shop/__init__.py": "",
    "shop/registry.py": (
        "MARK = 5\ndef build(ctx): return 'built'\nclass Box:\n    @staticmethod\n    def open(ctx): return 'open'\n"
    ),
    "shop/broken.py": "\n\nimport no_such_module_anywhere\n",
    "shop/raises.py": "def f():\n    raise RuntimeError('boom\\nsecond line')\n\nf()\n",
    "shop/leaves.py": "import sys\nsys.exit(3)\n",
    "shop/typo.py": "def build(ctx)\n    pass\n",
    "shop/inner/__init__.py": "",
    "shop/inner/deep.py": "def run(ctx): return 'deep'\n",
    "single_file_module.py": "def run(ctx): return 'single'\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A folder with a package; the interpreter forgets it afterwards."""
    for name, text in PACKAGE.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    path_before, modules_before = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = path_before
    for name in set(sys.modules) - modules_before:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ("shop.registry:build", "built"),
        ("shop.registry:Box.open", "open"),
        ("shop.inner.deep:run", "deep"),
        ("single_file_module:run", "single"),
    ],
)
def test_found(root: Path, call: str, result: str) -> None:
    assert resolve(call, root)(None) == result
    assert sys.path[0] == str(root)


REFUSED = [
    ("shop.registry", "is not package.module:function"),
    ("shop.registry:", "is not package.module:function"),
    ("shop/registry:build", "is not package.module:function"),
    ("..shop:build", "is not package.module:function"),
    ("shop.registry:build()", "is not package.module:function"),
    ("os:system", "the installed 'os' is not called: put a function that calls it into a module there"),
    ("shp.registry:build", '(did you mean "shop"?)'),
    ("shop.registri:build", "no module 'shop.registri' (did you mean \"shop.registry\"?)"),
    ("shop.zzzzzzzz:build", "no module 'shop.zzzzzzzz' (there are: shop.broken, shop.inner, "),
    ("shop.inner.dep:run", "no module 'shop.inner.dep' (did you mean \"shop.inner.deep\"?)"),
    ("shop.registry.more:run", "no module 'shop.registry.more'"),
    ("shop.registry:biuld", "no function 'biuld' in shop.registry (did you mean \"build\"?)"),
    ("shop.registry:zzzz", "no function 'zzzz' in shop.registry (there are: Box, build)"),
    ("shop.inner:zzzz", "no function 'zzzz' in shop.inner (there is none)"),
    ("shop.registry:MARK", "shop.registry:MARK is of type int, not a function"),
    ("shop.broken:f", "raised ModuleNotFoundError: No module named 'no_such_module_anywhere' (shop/broken.py:3)"),
    ("shop.raises:f", "importing shop.raises raised RuntimeError: boom (shop/raises.py:2)"),
    ("shop.leaves:f", "importing shop.leaves raised SystemExit: 3 (shop/leaves.py:2)"),
    ("shop.typo:build", "importing shop.typo raised SyntaxError: expected ':' (shop/typo.py:1)"),
]


@pytest.mark.parametrize(("call", "said"), REFUSED)
def test_refused_with_help(root: Path, call: str, said: str) -> None:
    with pytest.raises(CallInvalid) as caught:
        resolve(call, root)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_the_standard_library_does_not_answer_for_a_package_of_the_same_name(root: Path) -> None:
    (root / "json.py").write_text("def dumps(ctx): return 'mine'\n", encoding="utf-8")
    with pytest.raises(CallInvalid, match="another module named 'json' is loaded already"):
        resolve("json:dumps", root)


def test_a_module_is_imported_once(root: Path) -> None:
    (root / "shop" / "counts.py").write_text(
        "from pathlib import Path\n"
        "with Path(__file__).with_name('log').open('a') as f: f.write('x')\n"
        "def a(ctx): ...\ndef b(ctx): ...\n",
        encoding="utf-8",
    )
    assert resolve("shop.counts:a", root) is not resolve("shop.counts:b", root)
    assert (root / "shop" / "log").read_text(encoding="utf-8") == "x"


def test_a_module_written_after_a_failed_look_is_found(root: Path) -> None:
    with pytest.raises(CallInvalid):
        resolve("shop.late:run", root)
    (root / "shop" / "late.py").write_text("def run(ctx): return 'late'\n", encoding="utf-8")
    assert resolve("shop.late:run", root)(None) == "late"


def test_many_threads_resolve_at_once(tmp_path: Path) -> None:
    """The first ticks of a replica come together: its seats import the same modules at the same time."""
    for number in range(40):
        (tmp_path / f"together{number}.py").write_text("def f(ctx): return 1\n")
    gate = threading.Barrier(8)

    def resolve_all() -> int:
        gate.wait(30)
        found = 0
        for number in range(40):
            sys.path_importer_cache[f"relative{number}"] = None  # type: ignore[assignment]
            found += resolve(f"together{number}:f", tmp_path)(None)
        return found

    with ThreadPoolExecutor(8) as threads:
        assert [future.result(60) for future in [threads.submit(resolve_all) for _ in range(8)]] == [40] * 8


def test_a_folder_that_an_installed_package_hides_is_said_to_lack_its_init(root: Path) -> None:
    """Without one it is the last that an import looks at."""
    elsewhere = root / "elsewhere" / "hidden"
    elsewhere.mkdir(parents=True)
    (elsewhere / "__init__.py").touch()
    sys.path.append(str(elsewhere.parent))
    (root / "hidden").mkdir()
    (root / "hidden" / "work.py").write_text("def run(ctx): ...\n")
    with pytest.raises(CallInvalid, match=r"another module 'hidden' is found first.*no __init__\.py: add one"):
        resolve("hidden.work:run", root)
