"""Rates: no window has more starts than the rate allows and the burst, and no start is lost."""

from __future__ import annotations

import random
from contextlib import AbstractContextManager
from datetime import timedelta

import pytest

from tests.support import Claimed, Database
from tests.support.admission import Start, windows_with_too_many_starts

pytestmark = pytest.mark.engine

SECOND = timedelta(seconds=1)
TEN_MS = timedelta(milliseconds=10)


def limit(db: Database, rate: int, per: timedelta, burst: int, at_once: int | None = None) -> None:
    db.execute("select howdah.set_limit('api', %s, %s, %s, %s)", at_once, rate, per, burst)
    db.execute("select howdah.set_type_limit('mail', null, false, 'api')")
    db.admit_all()


def claim_all(db: Database) -> list[Claimed]:
    db.admit()
    return db.claim("mail", batch=1000)


def test_a_burst_starts_at_once_and_then_one_job_per_time(db: Database) -> None:
    limit(db, 10, SECOND, burst=3)
    for _ in range(10):
        db.enqueue("mail")
    with frozen(db):
        assert len(claim_all(db)) == 3
        db.clock.advance(99 * timedelta(milliseconds=1))
        assert claim_all(db) == []
        db.clock.advance(timedelta(milliseconds=1))
        assert len(claim_all(db)) == 1
        db.clock.advance(SECOND)
        assert len(claim_all(db)) == 3  # what was not used beyond the burst is lost


def frozen(db: Database) -> AbstractContextManager[None]:
    """Return a transaction: in it the clock moves only when the test moves it."""
    return db.transaction()


def test_jobs_that_stand_in_line_have_their_part_of_the_burst(db: Database) -> None:
    limit(db, 10, SECOND, burst=3)
    for _ in range(10):
        db.enqueue("mail")
    with frozen(db):
        db.admit()
        db.clock.advance(10 * SECOND)
        db.admit()
        assert len(db.admitted()) == 3  # nobody has claimed them
        assert len(db.claim("mail", batch=1000)) == 3
        assert claim_all(db) == []


def test_a_start_counts_from_its_claim_and_not_from_the_next_look(db: Database) -> None:
    limit(db, 1, SECOND, burst=1)
    first, _ = db.enqueue("mail"), db.enqueue("mail")
    with frozen(db):
        claims = claim_all(db)
        assert [claim.id for claim in claims] == [first]
        db.clock.advance(SECOND)
        assert len(claim_all(db)) == 1


@pytest.mark.parametrize("ended", [False, True])
def test_a_job_that_started_long_ago_uses_up_nothing(db: Database, ended: bool) -> None:
    limit(db, 1, SECOND, burst=1)
    db.enqueue("mail")
    with frozen(db):
        claims = claim_all(db)
        db.clock.advance(60 * SECOND)
        if ended:
            db.complete(claims)
            db.admit()
        db.enqueue("mail")
        assert len(claim_all(db)) == 1


def change_rate(db: Database, rate: int, burst: int) -> None:
    db.admit()  # what has started is used up at the old rate
    db.execute("select howdah.set_limit('api', null, %s, '1 second', %s)", rate, burst)


def test_a_lowered_rate_gives_no_second_burst(db: Database) -> None:
    limit(db, 100, SECOND, burst=10)
    for _ in range(30):
        db.enqueue("mail")
    with frozen(db):
        assert len(claim_all(db)) == 10
        change_rate(db, 1, burst=10)
        assert claim_all(db) == []
        db.clock.advance(SECOND)
        assert len(claim_all(db)) == 1


def test_a_raised_rate_counts_at_once(db: Database) -> None:
    limit(db, 1, SECOND, burst=10)
    for _ in range(30):
        db.enqueue("mail")
    with frozen(db):
        assert len(claim_all(db)) == 10
        change_rate(db, 100, burst=10)
        assert claim_all(db) == []
        db.clock.advance(50 * timedelta(milliseconds=1))
        assert len(claim_all(db)) == 5


def test_a_smaller_burst_makes_nobody_wait_for_more_than_it_has(db: Database) -> None:
    limit(db, 100, SECOND, burst=10)
    for _ in range(30):
        db.enqueue("mail")
    with frozen(db):
        assert len(claim_all(db)) == 10
        change_rate(db, 1, burst=2)
        assert claim_all(db) == []
        db.clock.advance(SECOND)
        assert len(claim_all(db)) == 1


@pytest.mark.parametrize("seed", range(5))
def test_no_window_has_more_starts_than_allowed(db: Database, seed: int) -> None:
    """Workers claim when they like, jobs are retried, and looks come at random times."""
    chance = random.Random(seed)
    rate, burst = chance.choice([(10, 1), (100, 5), (7, 2), (50, 20)])
    limit(db, rate, SECOND, burst, at_once=chance.choice([None, 3]))
    for _ in range(400):
        db.enqueue("mail")
    starts: list[timedelta] = []
    running: list[Claimed] = []
    with frozen(db):
        while len(starts) < 300 and db.clock.offset < 120 * SECOND:
            db.clock.advance(timedelta(milliseconds=chance.choice([1, 5, 20, 100, 700])))
            if chance.random() < 0.6:
                db.admit()
            if chance.random() < 0.5:
                claims = db.claim("mail", batch=chance.choice([1, 3, 100]))
                starts += [db.clock.offset] * len(claims)
                running += claims
            if running and chance.random() < 0.5:
                ending, running = running[: len(running) // 2 + 1], running[len(running) // 2 + 1 :]
                db.complete(ending) if chance.random() < 0.7 else db.retry(ending)
    assert len(starts) >= 100
    counted = [Start(rate * start.total_seconds(), burst) for start in starts]
    assert list(windows_with_too_many_starts(counted)) == []


def test_a_steady_rate_is_reached(db: Database) -> None:
    limit(db, 1000, SECOND, burst=51)
    db.enqueue_many([{"job_type": "mail"}] * 1200)
    started = 0
    with frozen(db):
        while db.clock.offset < SECOND:
            (row,) = db.rows("select next_look from howdah.admit()")
            started += len(db.complete(db.claim("mail", batch=1000)))
            db.clock.advance(row["next_look"])
    assert 990 <= started <= 1060


def test_a_rate_and_a_number_of_slots_hold_together(db: Database) -> None:
    limit(db, 100, SECOND, burst=10, at_once=4)
    for _ in range(20):
        db.enqueue("mail")
    with frozen(db):
        claims = claim_all(db)
        assert len(claims) == 4
        db.clock.advance(10 * SECOND)
        assert claim_all(db) == []
        db.complete(claims[:1])
        assert len(claim_all(db)) == 1


def test_a_look_says_when_the_next_one_is_worth_it(db: Database) -> None:
    limit(db, 1, timedelta(hours=1), burst=1)
    for _ in range(2):
        db.enqueue("mail")
    with frozen(db):
        claim_all(db)
        db.admit()
        (row,) = db.rows("select next_look from howdah.admit()")
        assert row["next_look"] == timedelta(hours=1)
