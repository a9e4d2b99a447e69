"""Acts: everything that somebody may do to a job, each as one call whose answer can be compared.

A `Scene` is one job brought to a stage, alone in its database. Whoever acts on it gives an answer
(what moved, or how many rows) and leaves the job as `left` describes it. Nothing in an answer or a
description depends on the moment or on the job's id, so two performances can be compared.
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


class Scene(NamedTuple):
    """One job, and the lease of the attempt it was last given out for."""

    job: UUID
    lease: Claimed


Act = Callable[[Session, Scene], object]


def prune(session: Session) -> None:
    """Answers nothing: whether the job is gone is seen in what is left."""
    session.prune()


VERBS: dict[str, Act] = {
    "claim": lambda s, at: tuple(c.attempts for c in s.claim(TYPE, worker="another")),
    "start": lambda s, at: bool(s.start([at.lease])),
    "progress": lambda s, at: bool(s.progress([at.lease], 40, "encoding")),
    "emit": lambda s, at: bool(s.emit([at.lease], "news")),
    "beat": lambda s, at: "lost" if s.beat("holder", [at.lease], HOUR) else "held",
    "complete": lambda s, at: bool(s.complete([at.lease])),
    "retry": lambda s, at: s.retry([at.lease]).get(at.job),
    "retry later": lambda s, at: s.retry([at.lease], delay=HOUR).get(at.job),
    "fail": lambda s, at: bool(s.fail([at.lease])),
    "release": lambda s, at: bool(s.release([at.lease])),
    "cancel by its worker": lambda s, at: bool(s.cancel_held([at.lease])),
    "cancel": lambda s, at: bool(s.cancel(at.job)),
    "recover": lambda s, at: s.recover_stale_jobs(TIMEOUT).get(at.job),
    "requeue": lambda s, at: bool(s.requeue(at.job)),
    "promote": lambda s, at: bool(s.promote()),
    "prune": lambda s, at: prune(s),
    "watch": lambda s, at: tuple(s.column("select status from howdah.watch(%s)", [at.job])),
}
PLAIN: dict[str, Act] = {
    "plain complete": lambda s, at: s.plain(COMPLETE, at.job),
    "plain fail": lambda s, at: s.plain(FAIL, at.job, "a foreign error"),
    "plain recover": lambda s, at: s.plain(RECOVER, TIMEOUT),
}
ACTS = VERBS | PLAIN

# They take what nobody else has, and wait for nobody (prune: not for long).
SKIPPING = {"claim", "recover", "promote", "prune"}
# For whom they do wait: the beat and recovery of one worker take turns.
WAITS_FOR: dict[str, set[str]] = {"claim": set(), "promote": set(), "recover": {"beat", "prune"}}
# They look again by themselves when a plain UPDATE carries the job off under them.
SURVIVING = {"claim", "cancel", "watch"}


def nothing(answer: object) -> bool:
    return not answer


STAGES = ("in line", "due", "held", "running", "last attempt", "failed", "old", "old, unprepared")


def set_the_scene(db: Database, stage: str) -> Scene:
    """Empty the database and bring one job to this stage, its holder silent for an hour.

    On its last attempt it is held by a stranger who never beat; else by a worker that did.
    """
    db.execute("delete from jobs; delete from workers; delete from job_events")
    db.execute("delete from finished_counts")
    if stage == "due":
        job = db.enqueue(TYPE, delay=HOUR)
        db.execute("update jobs_live set run_at = now() - interval '1 minute'")
        return Scene(job, Claimed(job, "holder", 1))
    job = db.enqueue(TYPE, max_attempts=1 if stage == "last attempt" else 3)
    (lease,) = claims = db.claim(TYPE, worker="holder")
    if stage != "last attempt":
        db.beat("holder", claims, MINUTE)
        db.execute("update workers set beat_at = beat_at - interval '1 hour'")
    match stage:
        case "in line":
            db.retry(claims)
        case "running":
            db.start(claims)
        case "failed":
            db.fail(claims)
        case "old" | "old, unprepared":
            db.fail(claims)
            age = 30 if stage == "old" else 31
            db.execute("update jobs_finished set finished_on = finished_on - %s", age)
            db.execute("update finished_counts set day = day - %s", age)
            if stage == "old":
                db.prepare_days()
            table = db.value("select tableoid::regclass::text from jobs")
            assert table.endswith("_unprepared") is (stage == "old, unprepared")
        case _:
            pass
    db.execute("update jobs_live set claimed_at = claimed_at - interval '1 hour'")
    return Scene(job, lease)


def left(db: Database) -> tuple[Any, ...]:
    """Describe what is left of the job, wherever it is; and see that the counts are true."""
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
