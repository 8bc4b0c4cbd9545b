"""The columns that reads use. The schema itself is made by the migrations; a test holds this page against it."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, Integer, MetaData, Table, Text
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP, UUID

metadata = MetaData(schema="soloist")
_instant = TIMESTAMP(timezone=True)

job = Table(
    "job",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("spec", JSONB, nullable=False),
    Column("watermark", _instant, nullable=False),
    Column("paused_at", _instant),
    Column("paused_until", _instant),
    Column("paused_by", Text),
    Column("paused_reason", Text),
    Column("removed_at", _instant),
)

run = Table(
    "run",
    metadata,
    Column("id", UUID, primary_key=True),
    Column("job", Integer, nullable=False),
    Column("run_key", Text, nullable=False),
    Column("scheduled_at", _instant, nullable=False),
    Column("created_at", _instant, nullable=False),
    Column("trigger", Text, nullable=False),
    Column("triggered_by", Text),
    Column("retry_of", UUID),
    Column("status", Text, nullable=False),
    Column("skip_reason", Text),
    Column("attempt", Integer, nullable=False),
    Column("retries_left", Integer, nullable=False),
    Column("crashes", Integer, nullable=False),
    Column("claimed_by", UUID),
    Column("claimed_until", _instant),
    Column("ready_at", _instant),
    Column("started_at", _instant),
    Column("finished_at", _instant),
    Column("payload", JSONB),
    Column("progress", JSONB),
    Column("checkpoint", JSONB),
    Column("result", JSONB),
    Column("last_error", Text),
    Column("cancel_requested_at", _instant),
    Column("spec_hash", Text),
    Column("trace_id", Text),
)

attempt = Table(
    "attempt",
    metadata,
    Column("run", UUID, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("replica_name", Text),
    Column("started_at", _instant, nullable=False),
    Column("finished_at", _instant, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("error_class", Text),
    Column("error_text", Text),
    Column("output_tail", Text),
    Column("output_bytes", BigInteger),
    Column("exit_code", Integer),
    Column("cpu", Double),
    Column("peak_rss", BigInteger),
)

replica = Table(
    "replica",
    metadata,
    Column("id", UUID, primary_key=True),
    Column("name", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("version", Text, nullable=False),
    Column("config_hash", Text, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("tzdata", Text, nullable=False),
    Column("clock_offset", Double, nullable=False),
    Column("seats", Integer, nullable=False),
    Column("fenced_writes", Integer, nullable=False),
    Column("leases_lost", Integer, nullable=False),
    Column("takeovers", Integer, nullable=False),
    Column("serves", Boolean, nullable=False),
    Column("lease", Double, nullable=False),
    Column("pooled", Boolean, nullable=False),
    Column("file_problem", Text),
    Column("started_at", _instant, nullable=False),
    Column("seen_at", _instant, nullable=False),
    Column("stopped_at", _instant),
)

config = Table(
    "config",
    metadata,
    Column("config_hash", Text, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("content", Text, nullable=False),
    Column("retention", JSONB, nullable=False),
    Column("registered_at", _instant, nullable=False),
)

plan_job = Table(
    "plan_job",
    metadata,
    Column("generation", Integer, primary_key=True),
    Column("job", Integer, primary_key=True),
    Column("spec_hash", Text, nullable=False),
)

audit = Table(
    "audit",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("at", _instant, nullable=False),
    Column("who", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("job", Text),
    Column("run", UUID),
    Column("why", Text),
    Column("until", _instant),
)
