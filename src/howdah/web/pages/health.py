"""Health: the checks of `howdah doctor`.

The doctor says what is wrong and what to do. Here each check also says what it is for.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from howdah.observe import Level
from howdah.web.cache import MAX_AGE, cache_of
from howdah.web.context import DashboardContext
from howdah.web.page import PageRoute

MEANINGS = {
    "oldest_transaction": "While a transaction is open, vacuum cannot remove rows that died since "
    "it began. A queue makes many dead rows, and every query reads past them.",
    "replication_slots": "A slot keeps the write-ahead log, and sometimes dead rows, for a reader. "
    "If the reader is gone, the disk fills up.",
    "standby_feedback": "A standby can ask this server to keep dead rows for the queries it runs.",
    "connections": "Workers, producers and this page need connections. When none is left, new ones "
    "are refused.",
    "notify_queue": "Workers are woken by NOTIFY. Its queue is shared by the whole server; when it "
    "is full, enqueueing fails.",
    "server_release": "Minor releases of PostgreSQL fix errors and security holes.",
    "clock_skew": "A time that a program gives comes from its own clock. The queue uses the "
    "server's.",
    "dead_rows": "Every claim and every ending leaves dead rows in the hot tables until vacuum "
    "removes them.",
    "autovacuum": "Autovacuum cleans the hot tables and keeps the server from running out of "
    "transaction numbers.",
    "freeze_age": "Rows must be frozen before transaction numbers are used again.",
    "days": "Finished jobs and events are kept in one partition per day; old days are dropped.",
    "workers": "A live worker is needed to claim jobs, and to recover the jobs of workers "
    "that have died.",
    "held_up": "A handler that holds the GIL lets nothing else run in its worker: no timeout, no "
    "cancellation, no shutdown.",
    "limits": "A job that holds a slot of a named limit and does not run keeps others waiting.",
    "schedules": "A schedule that does not fire enqueues no jobs, and nobody notices.",
    "upkeep": "A worker's upkeep puts jobs in line when their time has come.",
    "schema": "The functions in the database and this program must have the same version.",
}
TITLES = {
    "limits": "Named limits",
    "notify_queue": "NOTIFY queue",
    "held_up": "Handlers that hold the GIL",
    "days": "Partitions by day",
}


async def load(context: DashboardContext, request: Request) -> dict[str, Any]:
    diagnosis = await cache_of(context).diagnosis(request, max_age=MAX_AGE)
    by_level = {level: [c for c in diagnosis.checks if c.level is level] for level in Level}
    return {
        "diagnosis": diagnosis,
        "critical": len(by_level[Level.CRITICAL]),
        "warnings": len(by_level[Level.WARNING]),
        "unknown": len(by_level[Level.UNKNOWN]),
        "meanings": MEANINGS,
        "title_of": title_of,
    }


def title_of(name: str) -> str:
    """Return the title of a check."""
    return TITLES.get(name) or name.replace("_", " ").capitalize()


pages: list[PageRoute] = [PageRoute("/health", "health.html", load)]
