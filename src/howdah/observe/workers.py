"""Crew: the workers, how each is, and what it runs now.

In SQL  sql/80_observe/workers_now.sql

A foreign worker that never beats is listed too, by the jobs it holds.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from howdah import payload
from howdah.states import State
from howdah.store import Store, query

SHOWN = 20  # jobs of one worker


class Attempt(msgspec.Struct, frozen=True):
    """A job in a worker's hands."""

    id: UUID
    job_type: str
    status: State
    attempt: int
    progress: int
    current_stage: str | None
    claimed_at: datetime | None
    started_at: datetime | None


class HeldUp(msgspec.Struct, frozen=True):
    """How long no thread of a worker could run, and the types that may have held the GIL."""

    seconds: float
    types: list[str]
    now: bool = False  # whether it is so still


def read_held_up(told: str | None) -> HeldUp | None:
    """Read what a worker wrote of itself; None where it makes no sense."""
    try:
        return msgspec.json.decode(told or "", type=HeldUp)
    except msgspec.DecodeError:
        return None


class WorkerNow(msgspec.Struct, frozen=True, kw_only=True):
    """A worker and what it does."""

    id: str
    beats: bool  # false: a foreign worker, known by what it holds
    alive: bool
    started_at: datetime | None
    beat_at: datetime | None
    silent_for: timedelta | None
    draining: bool  # asked to leave, or about to
    holds: int
    info: dict[str, Any]  # host, pid, version, slots, running, job_types, leaving
    attempts: list[Attempt]  # the first that began, SHOWN at most


async def crew(store: Store, *, within: timedelta = query.WITHIN) -> list[WorkerNow]:
    """Return the workers, the living first."""
    rows = await query.fetch(store, within, "select * from howdah.workers_now($1)", SHOWN)
    said = [_object(payload.decode(row["info"])) for row in rows]
    return [
        WorkerNow(
            id=row["id"],
            beats=row["beats"],
            alive=row["alive"],
            started_at=row["started_at"],
            beat_at=row["beat_at"],
            silent_for=row["silent_for"],
            draining=row["draining"] or info.get("leaving") is True,
            holds=row["holds"],
            info=info,
            attempts=msgspec.json.decode(row["attempts"], type=list[Attempt]),
        )
        for row, info in zip(rows, said, strict=True)
    ]


def _object(info: Any) -> dict[str, Any]:
    return info if isinstance(info, dict) else {}  # pyright: ignore[reportUnknownVariableType]
