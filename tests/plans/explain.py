"""Explain: the cost of a statement, in buffers and rows instead of seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.support import Session


def buffers(db: Session, sql: str, *args: object) -> int:
    """Run a statement; return how many buffers it touched, nested statements included."""
    explained: list[dict[str, Any]] = db.value(
        f"explain (analyze, buffers, timing off, format json) {sql}", *args
    )
    plan = explained[0]["Plan"]
    return sum(plan[f"Shared {kind} Blocks"] for kind in ("Hit", "Read"))


class Read(NamedTuple):
    seq_scans: int
    rows: int


def read_by(db: Session, call: Callable[[], object], relation: str = "jobs_live") -> Read:
    """Return how often a call scanned the whole table, and how many of its rows it read."""
    with db.transaction():
        before = _statistics(db, relation)
        call()
        after = _statistics(db, relation)
    return Read(after.seq_scans - before.seq_scans, after.rows - before.rows)


def _statistics(db: Session, relation: str) -> Read:
    (row,) = db.rows(
        "select coalesce(seq_scan, 0) as seq_scans, "
        "coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) as rows "
        "from pg_stat_xact_user_tables where relid = %s::regclass",
        relation,
    )
    return Read(row["seq_scans"], row["rows"])
