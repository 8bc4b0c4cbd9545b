"""The jobs file in a mount of its own, as Kubernetes lays a ConfigMap down, and the code somewhere else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from desk import REPO, Desk
from replicas import eventually
from scene import Scene

CODE = "def hello(ctx, word='hello'):\n    print(word, 'from the code')\n"


class Mount:
    """`etc/jobs.yaml` -> `..data/jobs.yaml` -> a folder that is swapped at each edit."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._edits = folder / "etc", 0
        self.path = self.folder / "jobs.yaml"
        self.folder.mkdir()
        self.path.symlink_to("..data/jobs.yaml")

    def write(self, **jobs: dict[str, Any]) -> None:
        self._edits += 1
        made, link = self.folder / f"..edit{self._edits}", self.folder / "..data_tmp"
        made.mkdir()
        (made / "jobs.yaml").write_text(json.dumps({"version": 1, "defaults": {"timeout": "1m"}, "jobs": jobs}))
        link.symlink_to(made.name)
        link.rename(self.folder / "..data")


@pytest.fixture
def mount(desk: Desk) -> Mount:
    (desk.folder / "jobs").mkdir()
    (desk.folder / "jobs" / "__init__.py").touch()
    (desk.folder / "jobs" / "greet.py").write_text(CODE)
    made = Mount(desk.folder)
    made.write(a={"call": "jobs.greet:hello", "every": "1h"})
    desk.env["SOLOIST_JOBS"] = str(made.path)
    return made


def test_where_the_code_is_can_be_said(desk: Desk, mount: Mount) -> None:
    refused = desk.run("check")
    assert refused.code == 3
    assert f"jobs.a.call: no package or module 'jobs' in {mount.folder} (there is none)" in refused.err
    assert f"start with --root . (or SOLOIST_ROOT={desk.folder.resolve()})" in refused.err
    assert desk.run("check", "--root", ".").code == 0
    assert desk.run("check", str(mount.path), "--root", str(desk.folder)).code == 0
    assert desk.run("check", env={"SOLOIST_ROOT": "."}).code == 0
    assert desk.run("check", "--root", ".", env={"SOLOIST_ROOT": "/nowhere"}).code == 0, "the flag wins"
    assert desk.run("next", "a", "-n", "1", env={"SOLOIST_ROOT": "."}).code == 0


def test_a_root_that_is_none_is_one_problem(desk: Desk, mount: Mount) -> None:
    mount.write(a={"call": "jobs.greet:hello"}, b={"call": "jobs.greet:hello"})
    for command in (["check"], ["serve"], ["exec", "a"]):
        answer = desk.run(*command, "--root", "nowhere")
        assert answer.code == 3
        assert answer.err.startswith("SOLOIST_ROOT: there is no folder nowhere: ")
        assert "1 problem;" in answer.err


def test_what_is_elsewhere_is_said_to_be_there(desk: Desk, mount: Mount) -> None:
    mount.write(
        a={"call": "os:system"},
        b={"call": "jubs.greet:hello"},
        c={"call": "no_such_package:f"},
        d={"call": "pydantic.main:create_model"},
        e={"call": "sys:exit"},
    )
    of_a, of_b, of_c, of_d, of_e = desk.run("check", "--root", ".").err.splitlines()[:5]
    for name, line in (("os", of_a), ("pydantic", of_d), ("sys", of_e)):
        assert f"the installed '{name}' is not called: put a function that calls it into a module there" in line
    assert of_b.endswith('(did you mean "jobs"?)')
    assert "--root DIR (or SOLOIST_ROOT) names another folder" in of_c


@pytest.mark.parametrize("isolation", ["process", "thread"])
def test_one_run(desk: Desk, scene: Scene, mount: Mount, isolation: str) -> None:
    del scene
    mount.write(a={"call": "jobs.greet:hello", "every": "1h", "isolation": isolation})
    done = desk.run("exec", "a", "--root", ".")
    assert done.code == 0, done.err
    assert desk.run("runs", "list", "-o", "json").rows[0]["status"] == "succeeded"


@pytest.mark.parametrize("fleet", [[], ["--replicas", "2"]], ids=["alone", "fleet"])
def test_replicas_and_their_reload(desk: Desk, scene: Scene, mount: Mount, fleet: list[str]) -> None:
    serving = desk.start("serve", "--root", ".", *fleet)

    def runs(job: str) -> Any:
        assert serving.process.poll() is None, serving.text
        return scene.sql("SELECT run.id FROM soloist.run JOIN soloist.job ON job.id = run.job "
                         "WHERE name = %s AND status = 'succeeded'", job)  # fmt: skip

    eventually(lambda: "replica_started" in serving.text, "it runs")
    mount.write(a={"call": "jobs.greet:hello"}, b={"call": "jobs.greet:hello", "every": "500ms"})
    eventually(lambda: runs("b"), "what an edit brought runs")
    assert desk.run("trigger", "a", "--wait").code == 0, serving.text
    assert serving.end() == 0


def test_an_importable_package_is_not_callable_by_that(desk: Desk, mount: Mount) -> None:
    """PYTHONPATH says what can be imported, not what the jobs file may call."""
    work = desk.folder / "elsewhere"
    work.mkdir()
    command = {"PYTHONPATH": f"{desk.folder}:{REPO}", "SOLOIST_JOBS": str(mount.path)}
    answer = Desk(work, desk.env).run("check", env=command)
    assert answer.code == 3
    assert f"there is one in {desk.folder}: start with --root {desk.folder} (or SOLOIST_ROOT)" in answer.err
