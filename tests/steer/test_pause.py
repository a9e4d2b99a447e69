"""No claim takes jobs of a paused type; resuming wakes sleeping workers."""

from __future__ import annotations

import json
from collections.abc import Callable

import psycopg
import pytest

from howdah import Queue, State
from tests.support import Claimed, Database
from tests.support.listener import Listener
from tests.support.waiting import eventually

pytestmark = pytest.mark.engine


def pause(db: Database, job_type: str = "mail") -> bool:
    return db.value("select howdah.pause(%s)", job_type)


def resume(db: Database, job_type: str = "mail") -> bool:
    return db.value("select howdah.resume(%s)", job_type)


def claim_by_ranges(db: Database) -> list[str]:
    """Claim as our own workers do: parts of several lines at once."""
    return db.column(
        "select job_type from howdah.claim('w', 10, array['mail', 'mail', 'resize'], "
        "array[-2147483648, 0, -2147483648], array['-infinity', '-infinity', '-infinity']"
        "::timestamptz[], array_fill('00000000-0000-0000-0000-000000000000'::uuid, array[3]), "
        "array[-1, 2147483647, 2147483647])"
    )


CLAIMS: dict[str, Callable[[Database], list[str]]] = {
    "one type": lambda db: types(db.claim("mail")),
    "several types": lambda db: types(db.claim("mail", "resize", "other")),
    "ranges": claim_by_ranges,
}


def types(claims: list[Claimed]) -> list[str]:
    return [claim.job_type for claim in claims]


@pytest.mark.parametrize("way", CLAIMS)
def test_a_paused_type_is_not_claimed_and_other_types_are(db: Database, way: str) -> None:
    db.enqueue_many([{"job_type": t} for t in ("mail", "resize", "mail")])
    assert pause(db)
    assert set(CLAIMS[way](db)) <= {"resize"}
    assert db.depth()["mail", State.PENDING] == 2
    assert resume(db)
    assert CLAIMS[way](db).count("mail") == 2


def test_all_types_can_be_paused(db: Database) -> None:
    db.enqueue_many([{"job_type": t} for t in ("mail", "resize")])
    assert pause(db, "mail")
    assert pause(db, "resize")
    assert db.claim("mail", "resize") == []
    assert db.claim("mail") == []


def test_a_second_pause_or_resume_returns_false(db: Database) -> None:
    assert [pause(db), pause(db), resume(db), resume(db)] == [True, False, True, False]


def test_a_pause_records_its_user_and_reason(db: Database) -> None:
    db.value("select howdah.pause('mail', 'the relay is down', 'kim')")
    pause(db, "other")
    rows = db.rows("select job_type, paused_by, reason, paused_at from paused_types order by 1")
    assert [(row["paused_by"], row["reason"]) for row in rows] == [
        ("kim", "the relay is down"),
        (db.value("select session_user::text"), None),
    ]
    assert all(row["paused_at"] <= db.value("select clock_timestamp()") for row in rows)


def test_an_invalid_type_cannot_be_paused(db: Database) -> None:
    for name in ("", "x" * 201, "a\nb"):
        with pytest.raises(psycopg.errors.CheckViolation):
            pause(db, name)


def test_a_pause_applies_from_its_commit(db: Database) -> None:
    other = db.session()
    db.enqueue("mail")
    with db.transaction():
        pause(db)
        assert len(other.claim("mail")) == 1
    db.enqueue("mail")
    assert other.claim("mail") == []


def test_a_running_job_of_a_paused_type_can_complete(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail")
    pause(db)
    assert db.complete(claims) == {job}


def test_resuming_wakes_a_sleeping_worker_and_pausing_does_not(db: Database) -> None:
    listener = Listener(db)
    listener.sleep()
    pause(db)
    assert listener.heard() == []
    resume(db)
    (notification,) = listener.heard()
    assert json.loads(notification.payload) == ["mail"]
    resume(db)
    assert listener.heard() == []


async def test_a_worker_claims_no_paused_job_and_continues_after_the_resume(queue: Queue) -> None:
    done: list[int] = []

    @queue.job
    async def work(n: int) -> None:
        done.append(n)

    async with queue.worker():
        await queue.pause("work", "for a test")
        await work.enqueue(n=1)
        other = await queue.enqueue("work", {"n": 2})
        await eventually(lambda: _asleep(queue), "the worker sleeps although jobs are pending")
        assert done == []
        assert (await other.status()) is State.PENDING
        assert await queue.resume("work")
        await other.result(timeout=10)
    assert sorted(done) == [1, 2]


async def _asleep(queue: Queue) -> bool:
    """Return whether the worker found no job and waits for a notification."""
    return await queue.store.fetchval(
        "select exists (select from pg_locks where locktype = 'advisory' "
        "and objid = 1 and mode = 'ShareLock' and granted)"
    )
