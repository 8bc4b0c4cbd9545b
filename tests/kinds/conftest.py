"""Kinds for the tests: short graces, and everything gone at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from trial import ROOT, alive, until

from scheduler.kinds import Kind
from scheduler.kinds.python import Graces, PythonKind
from scheduler.kinds.thread import ThreadKind

Make = Callable[..., PythonKind]


@pytest.fixture(scope="module")
def make_kind() -> Iterator[Make]:
    """Process kinds with settings of one's own."""
    made: list[PythonKind] = []

    def make(**settings: Any) -> PythonKind:
        made.append(PythonKind(ROOT, **{"graces": Graces(cancel=0.5, term=0.7), **settings}))
        return made[-1]

    yield make
    for kind in made:
        zygote = kind.pool.zygote
        kind.close()
        if zygote is not None:
            until(lambda pid=zygote: not alive(pid), "the zygote is gone", 10)


@pytest.fixture(scope="module")
def process_kind(make_kind: Make) -> PythonKind:
    """One for a whole file: bodies must not hurt those after them."""
    return make_kind()


@pytest.fixture(scope="module")
def patient_kind(make_kind: Make) -> PythonKind:
    """For bodies that end by themselves once they are told: one that a busy machine holds is not killed meanwhile."""
    return make_kind(graces=Graces(cancel=20.0, term=20.0))


@pytest.fixture
def thread_kind() -> Iterator[ThreadKind]:
    kind = ThreadKind(ROOT)
    yield kind
    kind.close()


@pytest.fixture(params=["process", "thread"])
def kind(request: pytest.FixtureRequest) -> Kind:
    """Both isolations: a job means the same under either."""
    chosen: Kind = request.getfixturevalue(f"{request.param}_kind")
    return chosen
