"""Batches that overlap may wait for each other, but never forever.

howdah's verbs lock in one order, so they cause no deadlock among themselves. A plain UPDATE of many
rows has no order. Then PostgreSQL ends one of the two with 40P01, and howdah sends its call again.
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
from tests.races.actions import RECOVER
from tests.support import Claimed, Database, Session
from tests.support.background import BackgroundCall

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


@pytest.mark.parametrize(("first", "second"), [*product(BATCHES, repeat=2)])
def test_two_batches_of_the_same_jobs_both_end(db: Database, first: str, second: str) -> None:
    """One batch waits for the first job; the other must not lock a later job before it.

    Some jobs are on their last attempt, because some verbs treat these differently.
    """
    jobs = [db.enqueue("mail", max_attempts=limit) for limit in (1, 3, 1, 3)]
    claims = db.claim("mail")
    holder, *others = db.session(), db.session(), db.session()
    with holder.transaction():
        holder.execute("select from jobs_live where id = %s for update", jobs[0])
        under_way: list[BackgroundCall[object]] = []
        for session, verb in zip(others, (first, second), strict=True):
            under_way.append(BackgroundCall(lambda s=session, v=verb: BATCHES[v](s, claims[::-1])))
            if verb != "recover":  # which skips locked jobs
                db.wait_until_blocked(session)
    for call in under_way:
        call.result()
    assert db.depth() == db.counted()
    assert sum(db.counted().values()) == len(jobs)


@pytest.mark.parametrize("verb", ["cancel", "watch"])
def test_a_client_gets_no_error_from_a_deadlock_with_a_plain_update(
    db: Database, verb: str
) -> None:
    """The UPDATE locks a later job first. PostgreSQL ends our call, which is sent again."""
    foreign, client = db.session(), db.session()
    foreign.execute("set deadlock_timeout = '1min'; set lock_timeout = '4s'")
    # A session searches for a deadlock once, after this time.
    client.execute("set deadlock_timeout = '2s'")
    while (jobs := meet_in_a_deadlock(db, foreign, client, BATCHES[verb])) is None:
        pass  # our call searched before the foreign one waited
    assert [db.job(id)["progress"] for id in jobs] == [1, 1]
    if verb == "cancel":
        assert {db.state_of(id) for id in jobs} == {State.CANCELLED}
        assert db.counted() == db.depth()
    else:
        assert [db.job(id)["watched"] for id in jobs] == [True, True]


def meet_in_a_deadlock(
    db: Database,
    foreign: Session,
    client: Session,
    call: Callable[[Session, list[Claimed]], object],
) -> tuple[UUID, UUID] | None:
    """Let a call and an UPDATE of two jobs wait for each other.

    Returns the jobs; or None if PostgreSQL did not end the call, so the UPDATE had to give up.
    """
    low, high = db.enqueue("mail"), db.enqueue("mail")
    claims = db.claim("mail", worker="foreign")
    foreign.execute("begin")
    foreign.execute("update jobs set progress = 1 where id = %s", high)
    ours = BackgroundCall(lambda: call(client, claims))
    db.wait_until_blocked(client)
    try:
        foreign.execute("update jobs set progress = 1 where id = %s", low)
    except psycopg.errors.LockNotAvailable:
        foreign.execute("rollback")
        return None
    finally:
        foreign.execute("commit")
        ours.result()
    return low, high


def test_prune_skips_a_worker_that_is_beating_now(db: Database) -> None:
    for name in ("gone", "beating"):
        db.beat(name)
    db.clock.advance(timedelta(days=2))
    other = db.session()
    with other.transaction():
        other.beat("beating")
        db.prune()
        assert db.column("select id from workers") == ["beating"]


# ── random actions of many sessions ──

# Move the end of finished jobs back by a month. The delete trigger subtracts their counts.
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


class RandomActions:
    """Many sessions run random actions on the same few jobs; a seed decides the order."""

    JOBS, SESSIONS, STEPS = 24, 6, 60

    def __init__(self, db: Database, seed: int, *, plain: bool) -> None:
        self.db = db
        self.seed = seed
        self.plain = plain
        self.jobs = [db.enqueue("mail", max_attempts=1 + n % 3) for n in range(self.JOBS)]
        self.claims: list[Claimed] = []  # every claim so far
        self.ended: set[UUID] = set()
        self.completed: list[UUID] = []
        self.errors = 0

    def run(self) -> None:
        sessions = [self.db.session() for _ in range(self.SESSIONS)]
        calls = [BackgroundCall(lambda n=n, s=s: self._act(n, s)) for n, s in enumerate(sessions)]
        for problem in [call.problem() for call in calls]:  # wait for all calls before raising
            if problem is not None:
                raise problem

    def _act(self, number: int, session: Session) -> None:
        rng = random.Random(f"{self.seed}-{number}")
        for _ in range(self.STEPS):
            step = self._step(rng, f"worker-{number}")
            while True:
                try:
                    step(session)
                    break
                except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
                    if not self.plain:
                        raise
                    self.errors += 1

    def _step(self, rng: random.Random, worker: str) -> Callable[[Session], None]:
        """Choose an action with its arguments, so that it can be repeated."""
        ids = rng.sample(self.jobs, rng.randint(2, 8))
        own = [c for c in self.claims if c.worker_id == worker]
        claims = rng.sample(own, min(len(own), rng.randint(2, 8)))
        steps: list[Callable[[Session], None]] = [
            lambda s: self.claims.extend(s.claim("mail", worker=worker, batch=6)),
            lambda s: self._completed(s.complete(claims)),
            lambda s: self.ended.update(s.fail(claims)),
            lambda s: self._retried(s.retry(claims)),
            lambda s: ignore(s.release(claims)),
            lambda s: self.ended.update(s.cancel_held(claims)),
            lambda s: ignore(s.start(claims), s.progress(claims, 50), s.emit(claims, "news")),
            lambda s: self.ended.update(s.cancel(*ids[:3])),
            lambda s: ignore(s.requeue(*ids, attempts=3)),
            lambda s: ignore(s.rows("select howdah.watch(%s)", ids)),
            lambda s: self._retried(s.recover_stale_jobs(MOMENT)),
            lambda s: ignore(s.execute(AGE, ids)),
            lambda s: ignore(s.prune()),
            lambda s: ignore(s.prepare_days()),
            lambda s: ignore(s.upkeep()),
        ]
        if self.plain:
            steps += [recover_by_plain_update] * 3
        return rng.choice(steps)

    def _completed(self, moved: set[UUID]) -> None:
        self.completed += moved
        self.ended |= moved

    def _retried(self, moved: dict[UUID, State]) -> None:
        self.ended |= {id for id, state in moved.items() if state is State.FAILED}

    def check(self) -> None:
        rows = self.db.column("select id from jobs")
        assert len(rows) == len(set(rows)), "a job exists twice"
        assert set(self.jobs) - set(rows) <= self.ended, "a job is gone and never ended"
        assert len(self.completed) == len(set(self.completed)), "a job was completed twice"
        assert self.db.depth() == self.db.counted()


def ignore(*_: object) -> None: ...


def recover_by_plain_update(session: Session) -> None:
    """Recover every held job by a plain UPDATE: many rows, in no order."""
    session.plain(RECOVER, -timedelta(hours=1))


@pytest.fixture
def unguarded(dsn: str) -> Generator[Database]:
    """A database without the test guard, whose triggers take locks of their own."""
    database = Database(dsn)
    yield database
    database.close()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_our_verbs_never_deadlock_and_lose_nothing(unguarded: Database, seed: int) -> None:
    actions = RandomActions(unguarded, seed, plain=False)
    actions.run()
    actions.check()
    assert actions.claims
    assert actions.ended


@pytest.mark.parametrize("seed", [1, 2])
def test_calls_that_a_plain_update_broke_are_sent_again_and_nothing_is_lost(
    unguarded: Database, seed: int
) -> None:
    actions = RandomActions(unguarded, seed, plain=True)
    actions.run()
    actions.check()
    assert actions.claims
