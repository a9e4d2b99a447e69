"""Effects: a job and what it writes into the same database are one.

The handlers of effect_jobs.py write a row in the transaction that completes their job. `install`
makes the table, `read` returns the rows. The table has no unique key: an effect that happens twice
must be seen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

if TYPE_CHECKING:
    from tests.stories.move_log import Move
    from tests.stories.story_result import StoryResult

TABLE = Path(__file__).with_name("effects.sql").read_text(encoding="utf-8")
INSERT = "insert into story_effects.effects (job, pid, attempt) values ({}, {}, {})"
TYPES = frozenset({"write", "write_in_thread", "write_in_order", "linger", "linger_in_thread"})


@dataclass(frozen=True, slots=True)
class Effect:
    """One row that a handler wrote."""

    pid: int
    attempt: int
    xid: str


Effects = dict[str, list[Effect]]  # by job


def install(connection: psycopg.Connection[Any]) -> None:
    connection.execute(TABLE.encode())


def read(connection: psycopg.Connection[Any]) -> Effects:
    effects: Effects = defaultdict(list)
    for job, pid, attempt, xid in connection.execute(
        "select job::text, pid, attempt, xid::text from story_effects.effects"
    ):
        effects[job].append(Effect(pid, attempt, xid))
    return dict(effects)


# ── promises ──────────────────────────────────────────────────────────────────────────────


def a_completed_job_has_its_effect_exactly_once(result: StoryResult) -> Iterator[str]:
    for id, job in result.move_log.jobs.items():
        if job["job_type"] not in TYPES or job["status"] != "completed":
            continue
        effects = result.move_log.effects.get(id, [])
        if len(effects) != 1:
            yield f"job {id} is completed and has {len(effects)} effects: {effects}"


def an_effect_is_committed_with_the_completion_of_its_job(result: StoryResult) -> Iterator[str]:
    """By the holder of the lease, and in the same transaction."""
    for id, effects in result.move_log.effects.items():
        completed = _completion(result, id)
        for effect in effects:
            if completed is None or completed.after is None:
                yield f"job {id} is not completed and has an effect: {effect}"
            elif (result.history.workers.get(effect.pid), effect.attempt, effect.xid) != (
                completed.after.worker,
                completed.after.attempts,
                completed.xid,
            ):
                yield f"job {id} was completed by {completed}, and has the effect {effect}"


def _completion(result: StoryResult, id: str) -> Move | None:
    moves = result.move_log.moves.get(id, [])
    return next((m for m in moves if m.after and m.after.status == "completed"), None)
