"""Support: a store with the clock of the test, workers that beat, and measures."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from psycopg.types.json import Jsonb

from howdah import Queue
from howdah.store import Store
from tests.support import Database, Session

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


@asynccontextmanager
async def open_store(db: Database) -> AsyncGenerator[Store]:
    """Open a store on the test's database, with the test's clock."""
    separator = "&" if "?" in db.dsn else "?"
    offset = quote(f"{db.clock.offset.total_seconds()} seconds")
    async with Queue(f"{db.dsn}{separator}howdah.clock_offset={offset}") as queue:
        yield queue.store


def beat_worker(
    db: Session, worker: str, *job_types: str, slots: int = 10, running: int = 0, **more: Any
) -> None:
    """Record a beat of a worker that has registered these job types."""
    info = {"job_types": job_types, "slots": slots, "running": running, "host": "here", **more}
    db.execute("select howdah.beat(%s, p_info => %s)", worker, Jsonb(info))


def measure(db: Session, job_type: str, worker: str = "w", **measured: Any) -> bool:
    return db.value(
        "select howdah.record_measures(%s, %s)", worker, Jsonb([{"job_type": job_type, **measured}])
    )
