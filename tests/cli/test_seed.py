"""serve --seed: sample data on the embedded database, and nowhere else."""

from __future__ import annotations

from desk import Desk
from replicas import eventually
from scene import Scene

SEED = """
from sqlalchemy import text

def three(connection, today):
    with connection.begin():
        connection.execute(text("CREATE TABLE IF NOT EXISTS public.sample (day date)"))
        if connection.scalar(text("SELECT EXISTS (SELECT FROM public.sample)")):
            return 0
        for _ in range(3):
            connection.execute(text("INSERT INTO public.sample VALUES (:day)"), {"day": today})
    return 3
"""


def serve_until_started(desk: Desk) -> str:
    serving = desk.start("serve", "--seed", "samples:three")
    eventually(lambda: "replica_started" in serving.text, "the replica runs")
    assert serving.end() == 0
    return serving.text


def test_the_embedded_database_is_seeded_once(desk: Desk) -> None:
    desk.write(quick={"call": "work:quick"})
    (desk.folder / "samples.py").write_text(SEED)
    assert "sample data: 3 rows made by samples:three, on the embedded database only" in serve_until_started(desk)
    assert "sample data: there already" in serve_until_started(desk)


def test_a_real_database_is_left_alone(desk: Desk, scene: Scene) -> None:
    desk.write(quick={"call": "work:quick"})
    (desk.folder / "samples.py").write_text(SEED)
    assert "nothing was seeded" in serve_until_started(desk)
    assert scene.sql("SELECT to_regclass('public.sample') AS made") == [{"made": None}]


def test_a_function_that_is_not_there(desk: Desk) -> None:
    desk.write(quick={"call": "work:quick"})
    answer = desk.run("serve", "--seed", "work:quik")
    assert answer.code == 3
    assert 'did you mean "quick"' in answer.err
