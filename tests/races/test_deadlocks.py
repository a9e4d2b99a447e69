"""Batches that overlap may wait for each other, and never for ever.

Our verbs lock in one order, so among themselves no deadlock comes about. A plain UPDATE of many
rows has no order; then PostgreSQL ends one of the two with 40P01, and ours is sent again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from datetime import timedelta
from itertools import product
from uuid import UUID

import psycopg
import pytest

from howdah.states import State
from tests.races.acts import RECOVER
from tests.support import Claimed, Database, Session
from tests.support.aside import Aside

pytestmark = pytest.mark.engine

MOMENT = timedelta(microseconds=1)

BATCHES: dict[str, Callable[[Session, list[Claimed]], object]] = {
    "start": lambda s, claims: s.start(claims),
    "progress": lambda s, claims: s.progress(claims, 10),
    "emit": lambda s, claims: s.emit(claims, "news"),
    "complete": lambda s, claims: s.complete(claims),
    "fail": lambda s, claims: s.fail(claims),
    "retry": lambda s, claims: s.retry(claims),
    "release": lambda s, claims: s.release(claims),
    "cancel by its worker": lambda s, claims: s.cancel_held(claims),
    "cancel": lambda s, claims: s.cancel(*(claim.id for claim in claims)),
    "watch": lambda s, claims: s.rows("select howdah.watch(%s)", [c.id for c in claims]),
    "recover": lambda s, claims: s.recover_stale_jobs(MOMENT),
}


@pytest.mark.parametrize(("one", "two"), [*product(BATCHES, repeat=2)])
def test_two_batches_of_the_same_jobs_both_end(db: Database, one: str, two: str) -> None:
    """The one waits for the first job; the other comes, and must not take a later one before it.

    Some jobs are on their last attempt and some are not, for a verb that treats them differently.
    """
    jobs = [db.enqueue("mail", max_attempts=limit) for limit in (1, 3, 1, 3)]
    claims = db.claim("mail")
    holder, *others = db.session(), db.session(), db.session()
    with holder.transaction():
        holder.execute("select from jobs_live where id = %s for update", jobs[0])
        under_way: list[Aside[object]] = []
        for session, verb in zip(others, (one, two), strict=True):
            under_way.append(Aside(lambda s=session, v=verb: BATCHES[v](s, claims[::-1])))
            if verb != "recover":  # which passes by what is locked
                db.wait_until_blocked(session)
    for each in under_way:
        each.result()
    assert db.depth() == db.counted()
    assert sum(db.counted().values()) == len(jobs)


@pytest.mark.parametrize("verb", ["cancel", "watch"])
def test_a_person_never_hears_of_a_deadlock_with_a_plain_update(db: Database, verb: str) -> None:
    """It locks a later job first; so ours, which waits longer, is the one to be ended."""
    low, high = db.enqueue("mail"), db.enqueue("mail")
    claims = db.claim("mail", worker="foreign")
    foreign, person = db.session(), db.session()
    foreign.execute("set deadlock_timeout = '1min'")
    # a session looks for a deadlock once, so long after it began to wait: foreign waits by then
    person.execute("set deadlock_timeout = '2s'")
    with foreign.transaction():
        foreign.execute("update jobs set progress = 1 where id = %s", high)
        ours = Aside(lambda: BATCHES[verb](person, claims))
        db.wait_until_blocked(person)
        foreign.execute(
            "update jobs set progress = 1 where id = %s", low
        )  # ends ours, then goes on
    ours.result()
    assert [db.job(id)["progress"] for id in (low, high)] == [1, 1]
    if verb == "cancel":
        assert db.counted() == {("mail", State.CANCELLED): 2} == db.depth()
    else:
        assert db.column("select watched from jobs") == [True, True]


def test_prune_passes_by_a_worker_that_is_being_touched(db: Database) -> None:
    for name in ("gone", "touched"):
        db.beat(name)
    db.clock.advance(timedelta(days=2))
    other = db.session()
    with other.transaction():
        other.beat("touched")
        db.prune()
        assert db.column("select id from workers") == ["touched"]


# ── a storm ──

# Let finished jobs have ended a month ago. The trigger on what is deleted counts them out again.
AGE = """
    with gone as (
        delete from jobs_finished where id = any (%s) and finished_on > howdah.today() - 10
        returning *
    ), back as (
        insert into jobs_finished
        select (jsonb_populate_record(
            null::jobs, to_jsonb(gone) || jsonb_build_object('finished_on', finished_on - 30))).*
        from gone
    )
    insert into finished_counts select finished_on - 30, job_type, status, 1 from gone
"""


class Storm:
    """Many sessions do anything to the same few jobs, in orders that a seed decides."""

    JOBS, SESSIONS, STEPS = 24, 6, 60

    def __init__(self, db: Database, seed: int, *, plain: bool) -> None:
        self.db = db
        self.seed = seed
        self.plain = plain
        self.jobs = [db.enqueue("mail", max_attempts=1 + n % 3) for n in range(self.JOBS)]
        self.claims: list[Claimed] = []  # all that were ever handed out
        self.ended: set[UUID] = set()
        self.completed: list[UUID] = []
        self.broken_off = 0

    def rage(self) -> None:
        sessions = [self.db.session() for _ in range(self.SESSIONS)]
        calls = [Aside(lambda n=n, s=s: self._act(n, s)) for n, s in enumerate(sessions)]
        for problem in [call.problem() for call in calls]:  # of all, before any is raised
            if problem is not None:
                raise problem

    def _act(self, number: int, session: Session) -> None:
        chance = random.Random(f"{self.seed}-{number}")
        for _ in range(self.STEPS):
            step = self._step(chance, f"worker-{number}")
            while True:
                try:
                    step(session)
                    break
                except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
                    if not self.plain:
                        raise
                    self.broken_off += 1

    def _step(self, chance: random.Random, worker: str) -> Callable[[Session], None]:
        """Choose what to do, whole, so that it can be done again."""
        ids = chance.sample(self.jobs, chance.randint(2, 8))
        mine = [c for c in self.claims if c.worker_id == worker]
        claims = chance.sample(mine, min(len(mine), chance.randint(2, 8)))
        steps: list[Callable[[Session], None]] = [
            lambda s: self.claims.extend(s.claim("mail", worker=worker, batch=6)),
            lambda s: self._completed(s.complete(claims)),
            lambda s: self.ended.update(s.fail(claims)),
            lambda s: self._retried(s.retry(claims)),
            lambda s: void(s.release(claims)),
            lambda s: self.ended.update(s.cancel_held(claims)),
            lambda s: void(s.start(claims), s.progress(claims, 50), s.emit(claims, "news")),
            lambda s: self.ended.update(s.cancel(*ids[:3])),
            lambda s: void(s.requeue(*ids, attempts=3)),
            lambda s: void(s.rows("select howdah.watch(%s)", ids)),
            lambda s: self._retried(s.recover_stale_jobs(MOMENT)),
            lambda s: void(s.execute(AGE, ids)),
            lambda s: void(s.prune()),
            lambda s: void(s.prepare_days()),
            lambda s: void(s.upkeep()),
        ]
        if self.plain:
            steps += [recover_by_plain_update] * 3
        return chance.choice(steps)

    def _completed(self, moved: set[UUID]) -> None:
        self.completed += moved
        self.ended |= moved

    def _retried(self, moved: dict[UUID, State]) -> None:
        self.ended |= {id for id, state in moved.items() if state is State.FAILED}

    def check(self) -> None:
        rows = self.db.column("select id from jobs")
        assert len(rows) == len(set(rows)), "a job is there twice"
        assert set(self.jobs) - set(rows) <= self.ended, "a job is gone that never ended"
        assert len(self.completed) == len(set(self.completed)), "a job was completed twice"
        assert self.db.depth() == self.db.counted()


def void(*_: object) -> None: ...


def recover_by_plain_update(session: Session) -> None:
    """Whoever holds something has held it for too long: many rows, in no order."""
    session.plain(RECOVER, -timedelta(hours=1))


@pytest.fixture
def unguarded(dsn: str) -> Generator[Database]:
    """The guard takes notes of its own, and so has locks of its own."""
    database = Database(dsn)
    yield database
    database.close()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_our_verbs_never_deadlock_and_lose_nothing(unguarded: Database, seed: int) -> None:
    storm = Storm(unguarded, seed, plain=False)
    storm.rage()
    storm.check()
    assert storm.claims
    assert storm.ended


@pytest.mark.parametrize("seed", [1, 2])
def test_whoever_is_broken_off_by_a_plain_update_is_sent_again_and_nothing_is_lost(
    unguarded: Database, seed: int
) -> None:
    storm = Storm(unguarded, seed, plain=True)
    storm.rage()
    storm.check()
    assert storm.claims
