"""What replicas may do, in any order: tick, dequeue, end, renew, take over, start, die, and get other files."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from cast import FILES, Player
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from ledger import Ledger
from own_time import OwnTime
from scene import Scene
from sqlalchemy import Connection, create_engine

from scheduler.core.model import Ending, Outcome
from scheduler.core.policy import decide_outcome
from scheduler.store import runs
from scheduler.store.connect import connect
from scheduler.store.runs import Settlement

PLAYERS = st.integers(0, 2)
ANY = st.integers(0, 50)  # which of those that there are
ENDS = st.sampled_from([Outcome.SUCCEEDED, *[Outcome.FAILED] * 3, *Outcome])


class Stage:
    """The database, its time, and what is opened once for all examples."""

    def __init__(self, url: str) -> None:
        self.scene = Scene(url)
        self.time = OwnTime(self.scene)
        engine = create_engine("postgresql+psycopg://", creator=lambda: self.time.tell(connect(url, "purge")))
        self.purging: Connection = engine.connect()
        self.applying = self.time.tell(connect(url, "apply"))

    def reset(self) -> None:
        for table in ("attempt", "run", "plan_job", "job", "replica", "config", "audit"):
            self.scene.sql(f"DELETE FROM soloist.{table}")
        self.time.reset()

    def close(self) -> None:
        self.purging.close()
        self.purging.engine.dispose()
        self.applying.close()
        self.scene.close()


class ReplicaRules(RuleBasedStateMachine):
    """Each rule is one thing that happens; then the ledger looks."""

    stage: Stage

    def __init__(self) -> None:
        super().__init__()
        self.stage.reset()
        self.scene, self.time = self.stage.scene, self.stage.time
        self.ledger = Ledger(self.scene)
        self.players: list[Player] = []
        self.ghosts: list[Player] = []

    @initialize(files=st.lists(st.integers(0, 1), min_size=3, max_size=3))
    def they_start(self, files: list[int]) -> None:
        for number, file in enumerate(files):
            self.players.append(self._player(f"r{number}", file))
            self.players[-1].apply()
        self.ledger.look()

    def _player(self, name: str, file: int) -> Player:
        return Player(self.scene, self.stage.applying, name, file)

    # -- time, and what replicas do with it

    @rule(seconds=st.sampled_from([1, 5, 11, 20, 40, 150, 20_000]), silent=st.none() | PLAYERS)
    def time_passes(self, seconds: float, silent: int | None) -> None:
        """Those that are not silent renew what they hold before, and say that they live after."""
        for number, player in enumerate(self.players):
            if number != silent:
                self._renew(player)
        self.time.move_on(seconds)
        for number, player in enumerate(self.players):
            if number != silent:
                player.beat()
        self.ledger.look()

    def _renew(self, player: Player) -> None:
        asked = [(id_, claim.attempt, None) for id_, (claim, _) in player.held.items()]
        renewed = runs.renew(self.scene.mine, player.owner, asked).renewed
        assert set(renewed) == {(id_, attempt) for id_, attempt, _ in asked if self._owns(player, id_, attempt)}
        self.ledger.look()

    @rule(
        who=PLAYERS,
        after=st.sampled_from([0, 3, 10, 10, 10, 25, 60]),
        fresh=st.booleans(),
        seats=st.integers(0, 6),
        skew=st.sampled_from([0, 0, 0, -7, 12]),
    )
    def claim(self, who: int, after: float, fresh: bool, seats: int, skew: int) -> None:
        self.time.move_on(after)
        if fresh:
            self.players[who].read()
        self.players[who].claim(self.time.now() + timedelta(seconds=skew), seats)
        self.ledger.look()

    @rule(who=PLAYERS, after=st.sampled_from([4, 10, 15, 35]), seats=st.integers(1, 6))
    def tick(self, who: int, after: float, seats: int) -> None:
        """As it goes most of the time."""
        self.claim(who, after, fresh=True, seats=seats, skew=0)

    @rule(who=PLAYERS, seats=st.integers(1, 6))
    def dequeue(self, who: int, seats: int) -> None:
        player = self.players[who]
        taken = player.dequeue(seats)
        assert len(taken) <= seats
        for id_ in taken:
            job = self.ledger.jobs[self.ledger.runs[id_]["job"]]
            assert player.specs[job["name"]].hash == job["spec_hash"], f"{job['name']} by a stale spec"
        self.ledger.look()

    @rule(which=ANY, how=ENDS, begun=st.booleans())
    def finish(self, which: int, how: Outcome, begun: bool) -> None:
        """The end of an attempt that somebody believes to hold, or to have held."""
        held = [(player, id_) for player in [*self.players, *self.ghosts] for id_ in sorted(player.held)]
        if held:
            self._finish(*held[which % len(held)], Ending(how, error_text="as it was drawn", started=begun))

    def _finish(self, player: Player, id_: UUID, ending: Ending) -> None:
        claim, spec = player.held.pop(id_)
        end = Settlement(id_, claim.attempt, decide_outcome(spec, claim, ending, 0.5), ending)
        owned = self._owns(player, id_, claim.attempt)
        done = runs.settle(self.scene.mine, player.owner, [end])
        assert len(done) == owned, "the fence: an end is written by the attempt that owns the run, and by no other"
        self.ledger.look()
        if done and done[0].waiting:
            runs.promote(self.scene.mine, [done[0].job_id])
            self.ledger.look()

    def _owns(self, player: Player, id_: UUID, attempt: int) -> bool:
        row = self.ledger.runs.get(id_)
        standing = row and (row["status"], row["claimed_by"], row["attempt"])
        return standing == ("running", player.me.id, attempt)

    @rule(who=PLAYERS, dead=st.booleans(), renewed=st.booleans())
    def take_over(self, who: int, dead: bool, renewed: bool) -> None:
        """Of owners whose leases are over, or (`dead`) who are gone; a renewal in between wins."""
        now, live = self.time.now(), {player.me.id for player in self.players}
        seen = runs.look(self.scene.mine, self.players[who].owner, self.players[who].generation).expired
        running = [row for row in self.ledger.runs.values() if row["status"] == "running"]
        assert {id_ for id_, _ in seen} == {row["id"] for row in running if row["claimed_until"] < now}
        if dead:
            seen = tuple((row["id"], row["claimed_until"]) for row in running if row["claimed_by"] not in live)
        if renewed:
            seen = tuple((id_, until - timedelta(microseconds=1)) for id_, until in seen)
        taken = runs.take_over(self.scene.mine, seen, gone=dead)
        assert {one.id for one in taken} == (set() if renewed else {id_ for id_, _ in seen})
        self.ledger.look()

    # -- files

    @rule(who=PLAYERS, file=st.integers(0, len(FILES) - 1), how=st.sampled_from(["stop", "die", "edit", "follow"]))
    def deploy(self, who: int, file: int, how: str) -> None:
        """A pod is replaced, in good order or not; the file is edited under it; or it hears that another is in force.

        What one that died held is still at work somewhere, and may end late: a ghost's.
        """
        player = self.players[who]
        if how in ("stop", "die"):
            self._replace(who, file, said=how == "stop")
        elif how == "edit" and file != player.file:
            player.file, player.after, before = file, player.generation, player.generation
            self._in_force(player)
            assert player.generation > before, "an edit is newer than what it was made from"
        else:
            self._in_force(player)

    def _replace(self, who: int, file: int, *, said: bool) -> None:
        old = self.players[who]
        if said:
            self._leave(old)
        self.ghosts.append(old)
        self.players[who] = self._player(old.name, file)
        self._in_force(self.players[who])

    def _leave(self, player: Player) -> None:
        self.scene.mine.run("leave", {"me": player.me.id, "fenced_writes": 0, "leases_lost": 0, "takeovers": 0})

    def _in_force(self, player: Player) -> None:
        applied = player.apply()
        self.ledger.look()
        live = self.scene.sql(
            "SELECT max(generation) AS newest FROM soloist.replica WHERE stopped_at IS NULL AND id <> %s"
            " AND seen_at > clock_timestamp() - interval '35 s'",
            player.me.id,
        )[0]["newest"]
        assert applied.in_force == (player.generation >= (live or 0))
        if applied.in_force:
            there = {job["name"]: job["spec_hash"] for job in self.ledger.jobs.values() if job["removed_at"] is None}
            assert there == {name: spec.hash for name, spec in player.specs.items()}
