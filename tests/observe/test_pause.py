"""A paused type is claimed by nobody, whoever asks and however; resuming wakes those who sleep."""

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


def claim_by_stretches(db: Database) -> list[str]:
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
    "stretches": claim_by_stretches,
}


def types(claims: list[Claimed]) -> list[str]:
    return [claim.job_type for claim in claims]


@pytest.mark.parametrize("way", CLAIMS)
def test_a_paused_type_is_claimed_by_nobody_and_the_others_are(db: Database, way: str) -> None:
    db.enqueue_many([{"job_type": t} for t in ("mail", "resize", "mail")])
    assert pause(db)
    assert set(CLAIMS[way](db)) <= {"resize"}
    assert db.depth()["mail", State.PENDING] == 2
    assert resume(db)
    assert CLAIMS[way](db).count("mail") == 2


def test_all_types_may_be_paused(db: Database) -> None:
    db.enqueue_many([{"job_type": t} for t in ("mail", "resize")])
    assert pause(db, "mail")
    assert pause(db, "resize")
    assert db.claim("mail", "resize") == []
    assert db.claim("mail") == []


def test_pausing_twice_is_pausing_once_and_both_say_so(db: Database) -> None:
    assert [pause(db), pause(db), resume(db), resume(db)] == [True, False, True, False]


def test_a_pause_says_who_and_why(db: Database) -> None:
    db.value("select howdah.pause('mail', 'the relay is down', 'kim')")
    pause(db, "other")
    rows = db.rows("select job_type, paused_by, reason, paused_at from paused_types order by 1")
    assert [(row["paused_by"], row["reason"]) for row in rows] == [
        ("kim", "the relay is down"),
        (db.value("select session_user::text"), None),
    ]
    assert all(row["paused_at"] <= db.value("select clock_timestamp()") for row in rows)


def test_a_type_that_cannot_be_is_not_paused(db: Database) -> None:
    for wrong in ("", "x" * 201, "a\nb"):
        with pytest.raises(psycopg.errors.CheckViolation):
            pause(db, wrong)


def test_a_pause_holds_from_its_commit_on(db: Database) -> None:
    other = db.session()
    db.enqueue("mail")
    with db.transaction():
        pause(db)
        assert len(other.claim("mail")) == 1
    db.enqueue("mail")
    assert other.claim("mail") == []


def test_what_is_at_work_goes_on_to_its_end(db: Database) -> None:
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
    (heard,) = listener.heard()
    assert json.loads(heard.payload) == ["mail"]
    resume(db)
    assert listener.heard() == []


async def test_our_workers_obey_within_their_next_claim_and_go_on_after(queue: Queue) -> None:
    done: list[int] = []

    @queue.job
    async def work(n: int) -> None:
        done.append(n)

    async with queue.worker():
        await queue.pause("work", "for a test")
        await work.enqueue(n=1)
        other = await queue.enqueue("work", {"n": 2})
        await eventually(lambda: _asleep(queue), "the worker sleeps beside the jobs")
        assert done == []
        assert (await other.status()) is State.PENDING
        assert await queue.resume("work")
        await other.result(timeout=10)
    assert sorted(done) == [1, 2]


async def _asleep(queue: Queue) -> bool:
    """Whether the worker has looked for jobs, found none and waits to be woken."""
    return await queue.store.fetchval(
        "select exists (select from pg_locks where locktype = 'advisory' "
        "and objid = 1 and mode = 'ShareLock' and granted)"
    )
