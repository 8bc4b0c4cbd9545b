"""Our sessions as the server sees them: whose lock is held where, and their end by an administrator."""

from __future__ import annotations

import hashlib
import uuid

from replicas import Fleet, Replica, eventually

NAMES = ("soloist keeper", "soloist worker", "soloist settler")


def holder(fleet: Fleet, key: int) -> int | None:
    """The pid of the backend that holds this advisory lock in the fleet's database."""
    high, low = (key >> 32) & 0xFFFFFFFF, key & 0xFFFFFFFF
    rows = fleet.sql(
        "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1"
        " AND classid = %s::bigint::oid AND objid = %s::bigint::oid"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        high,
        low,
    )
    assert len(rows) <= 1
    return rows[0][0] if rows else None


def presence_key(fleet: Fleet, replica: Replica) -> int:
    """Of a live replica: its id's last eight bytes."""
    ((id_,),) = fleet.sql("SELECT id FROM soloist.replica WHERE name = %s AND stopped_at IS NULL", replica.name)
    assert isinstance(id_, uuid.UUID)
    return int.from_bytes(id_.bytes[8:], signed=True)


def job_key(job: str) -> int:
    """Of a job with `guard: advisory_lock`."""
    return int.from_bytes(hashlib.sha256(f"soloist.{job}".encode()).digest()[:8], signed=True)


def keeper_of(fleet: Fleet, replica: Replica) -> int:
    """The backend of the replica's dedicated session: the one that holds its presence lock; waits for it."""
    key = presence_key(fleet, replica)
    return int(eventually(lambda: holder(fleet, key), f"{replica.name} holds its presence lock"))


def terminate(fleet: Fleet, pid: int) -> None:
    fleet.sql("SELECT pg_terminate_backend(%s)", pid)


def terminate_all(fleet: Fleet, *names: str) -> int:
    """End the sessions with these application names in the fleet's database; how many there were."""
    found = fleet.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = ANY(%s) AND datname = current_database()",
        list(names),
    )
    return len(found)
