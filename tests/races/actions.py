"""Actions: everything that a client can do to a job, each as one call with a comparable answer.

A `Setup` is one job in a given starting state, alone in its database. An action returns an answer
(what moved, or how many rows), and `describe_job` describes the job afterwards. Answers and
descriptions contain no time and no id, so two runs can be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from tests.support import Claimed, Database, Session

TIMEOUT = timedelta(minutes=5)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
TYPE = "mail"

# The contract's statements, word for word.
COMPLETE = "UPDATE jobs SET status='completed', progress=100, completed_at=now() WHERE id=$1"
FAIL = (
    "UPDATE jobs SET status = CASE WHEN attempts >= max_attempts THEN 'failed' ELSE 'pending' END,"
    " last_error=$2, worker_id=NULL, claimed_at=NULL WHERE id=$1"
)
RECOVER = (
    "UPDATE jobs SET status='pending', worker_id=NULL, claimed_at=NULL"
    " WHERE status IN ('claimed','running') AND claimed_at < now() - $1::interval"
    " AND attempts < max_attempts"
)


class Setup(NamedTuple):
    """One job, and the lease of its last claim."""

    job: UUID
    lease: Claimed


Act = Callable[[Session, Setup], object]


def prune(session: Session) -> None:
    """Return nothing: `describe_job` shows whether the job is gone."""
    session.prune()


VERBS: dict[str, Act] = {
    "claim": lambda s, on: tuple(c.attempts for c in s.claim(TYPE, worker="another")),
    "start": lambda s, on: bool(s.start([on.lease])),
    "progress": lambda s, on: bool(s.progress([on.lease], 40, "encoding")),
    "emit": lambda s, on: bool(s.emit([on.lease], "news")),
    "beat": lambda s, on: "lost" if s.beat("holder", [on.lease], HOUR) else "held",
    "complete": lambda s, on: bool(s.complete([on.lease])),
    "retry": lambda s, on: s.retry([on.lease]).get(on.job),
    "retry later": lambda s, on: s.retry([on.lease], delay=HOUR).get(on.job),
    "fail": lambda s, on: bool(s.fail([on.lease])),
    "release": lambda s, on: bool(s.release([on.lease])),
    "cancel by its worker": lambda s, on: bool(s.cancel_held([on.lease])),
    "cancel": lambda s, on: bool(s.cancel(on.job)),
    "recover": lambda s, on: s.recover_stale_jobs(TIMEOUT).get(on.job),
    "requeue": lambda s, on: bool(s.requeue(on.job)),
    "promote": lambda s, on: bool(s.promote()),
    "prune": lambda s, on: prune(s),
    "watch": lambda s, on: tuple(s.column("select status from howdah.watch(%s)", [on.job])),
}
PLAIN: dict[str, Act] = {
    "plain complete": lambda s, on: s.plain(COMPLETE, on.job),
    "plain fail": lambda s, on: s.plain(FAIL, on.job, "a foreign error"),
    "plain recover": lambda s, on: s.plain(RECOVER, TIMEOUT),
}
ACTIONS = VERBS | PLAIN

# These skip locked jobs instead of waiting (prune waits for a short time).
SKIPPING = {"claim", "recover", "promote", "prune"}
# The actions that they do wait for: beat and recovery of one worker lock the same row.
WAITS_FOR: dict[str, set[str]] = {"claim": set(), "promote": set(), "recover": {"beat", "prune"}}
# These retry by themselves when a plain UPDATE moves the job to another partition.
SURVIVING = {"claim", "cancel", "watch"}


def is_empty(answer: object) -> bool:
    return not answer


START_STATES = (
    "in line",
    "due",
    "held",
    "running",
    "last attempt",
    "failed",
    "old",
    "old, unprepared",
)


def set_up(db: Database, start: str) -> Setup:
    """Empty the database and bring one job to this state, its worker silent for an hour.

    The worker of a last attempt never beat; every other worker did.
    """
    db.execute("delete from jobs; delete from workers; delete from job_events")
    db.execute("delete from finished_counts")
    if start == "due":
        job = db.enqueue(TYPE, delay=HOUR)
        db.execute("update jobs_live set run_at = now() - interval '1 minute'")
        return Setup(job, Claimed(job, "holder", 1))
    job = db.enqueue(TYPE, max_attempts=1 if start == "last attempt" else 3)
    (lease,) = claims = db.claim(TYPE, worker="holder")
    if start != "last attempt":
        db.beat("holder", claims, MINUTE)
        db.execute("update workers set beat_at = beat_at - interval '1 hour'")
    match start:
        case "in line":
            db.retry(claims)
        case "running":
            db.start(claims)
        case "failed":
            db.fail(claims)
        case "old" | "old, unprepared":
            db.fail(claims)
            age = 30 if start == "old" else 31
            db.execute("update jobs_finished set finished_on = finished_on - %s", age)
            db.execute("update finished_counts set day = day - %s", age)
            if start == "old":
                db.prepare_days()
            table = db.value("select tableoid::regclass::text from jobs")
            assert table.endswith("_unprepared") is (start == "old, unprepared")
        case _:
            pass
    db.execute("update jobs_live set claimed_at = claimed_at - interval '1 hour'")
    return Setup(job, lease)


def describe_job(db: Database) -> tuple[Any, ...]:
    """Describe the job in any partition, and check that the counts are correct."""
    assert db.depth() == db.counted()
    rows = db.rows(
        "select status, worker_id, attempts, max_attempts, progress, current_stage, last_error, "
        "events_count, watched, jsonb_array_length(errors) as errors, "
        "status = 'pending' and ready_at is null as waits, claimed_at is null as unclaimed, "
        "completed_at is null as unended, (select count(*) from job_events) as events from jobs"
    )
    assert len(rows) <= 1, "the job is there twice"
    return tuple(rows[0].items()) if rows else ()


def is_live(description: tuple[Any, ...]) -> bool:
    return dict(description).get("status") in ("pending", "claimed", "running")
