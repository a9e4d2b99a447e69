"""Two and three sessions use one unique key, in every interleaving of their statements.

Each session has a list of steps. A step that waits for a lock stays under way while the others go
on. After each step at most one live job has the key; no session gets an error; and a job that an
enqueue was told of does not begin before that enqueue's transaction has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from itertools import permutations
from typing import Any
from uuid import UUID

import psycopg
import pytest

from howdah.states import State
from tests.support import Claimed, Database, Session
from tests.support.background import BackgroundCall
from tests.support.databases import Databases
from tests.support.waiting import wait_until

pytestmark = pytest.mark.engine

KEY = "order-7"
Step = Callable[["Actor"], Any]


class Actor:
    """A session with its steps; those that cannot run yet wait for the one that is under way."""

    def __init__(self, race: Race, session: Session, steps: Sequence[Step]) -> None:
        self.race = race
        self.session = session
        self._left = list(steps)
        self._due = 0
        self._under_way: BackgroundCall[Any] | None = None
        self.claims: list[Claimed] = []
        self.told: UUID | None = None  # of which job the open transaction was told

    def advance(self) -> None:
        """Let the next step run, as soon as the one before it has ended."""
        self._due += 1
        self.proceed()

    def proceed(self) -> None:
        while self._due and (self._under_way is None or self._under_way.over):
            if self._under_way is not None:
                self._under_way.result()
            self._due -= 1
            step = self._left.pop(0)
            self._under_way = call = BackgroundCall(lambda step=step: step(self))
            wait_until(
                lambda call=call: call.over or self.race.db.blocked_by_a_lock(self.session),
                "the step has ended or waits for a lock",
                pause=0.0005,
            )
            if not call.over:
                return

    def over(self) -> bool:
        self.proceed()
        if self._due or (self._under_way is not None and not self._under_way.over):
            return False
        if self._under_way is not None:
            self._under_way.result()
        return True


class Race:
    """A database with sessions, and what the last race did."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.sessions = [db.session() for _ in range(3)]
        self.until = "ended"
        self.actors: list[Actor] = []
        self.before: UUID | None = None

    def run(
        self, until: str, before: str, steps: Sequence[Sequence[Step]], order: Sequence[int]
    ) -> None:
        self.until = until
        self.db.execute("delete from jobs; delete from unique_keys; delete from finished_counts")
        self.before = None
        if before != "nothing":
            self.before = self.db.value(enqueue_sql(until))
            if before in ("failed", "failed, its key left"):
                self.db.fail(self.db.claim("mail"))
            if before == "failed, its key left":  # as after a plain UPDATE
                self.db.execute("insert into unique_keys values (%s, 'mail', %s)", KEY, self.before)
            elif before == "claimed":
                self.db.claim("mail", worker="holder")
        self.actors = [
            Actor(self, session, own) for session, own in zip(self.sessions, steps, strict=False)
        ]
        for number in order:
            self.actors[number].advance()
            for actor in self.actors:
                actor.proceed()
            self.check()
        wait_until(self._over, "all steps have ended", pause=0.001)
        self.check()

    def _over(self) -> bool:
        over = [actor.over() for actor in self.actors]  # all go on: one may wait for another
        return all(over)

    def check(self) -> None:
        """Check what is committed now."""
        unstarted = "and worker_id is null and attempts = 0" if self.until == "started" else ""
        live = self.db.column(f"select id from jobs_live where unique_key = %s {unstarted}", KEY)
        assert len(live) <= 1, live
        for actor in self.actors:
            if actor.told is not None and self.until == "started":
                status = self.db.column("select status from jobs where id = %s", actor.told)
                assert status in ([], ["pending"]), "it began before the transaction ended"


def enqueue_sql(until: str, conflict: str = "existing") -> str:
    return (
        f"select howdah.enqueue('mail', p_unique_key => '{KEY}', p_unique_until => '{until}', "
        f"p_on_conflict => '{conflict}')"
    )


@contextmanager
def may_be_refused(part: str) -> Generator[None]:
    try:
        yield
    except psycopg.Error as error:
        if part not in str(error):
            raise


def enqueue(actor: Actor) -> None:
    actor.session.execute("begin")
    known = set(actor.session.column("select id from jobs"))
    id = actor.session.value(enqueue_sql(actor.race.until))
    if id in known:
        actor.told = id


def enqueue_many(actor: Actor) -> None:
    """Enqueue two with the same key in one call: both get the same job."""
    actor.session.execute("begin")
    ids = actor.session.enqueue_many(
        [
            {"job_type": "mail", "unique_key": KEY, "unique_until": actor.race.until},
            {"job_type": "mail", "unique_key": KEY, "unique_until": actor.race.until},
        ]
    )
    assert len(ids) == 2
    assert ids[0] == ids[1]


def plain_insert(actor: Actor) -> None:
    actor.session.execute("begin")
    with may_be_refused("belongs to job"), actor.session.transaction():  # a savepoint
        actor.session.execute(
            "insert into jobs (job_type, unique_key, unique_until) values ('mail', %s, %s)",
            KEY,
            actor.race.until,
        )


def commit(actor: Actor) -> None:
    told, actor.told = actor.told, None
    actor.session.execute("commit")
    if told is not None:
        assert actor.session.column("select id from jobs where id = %s", told), "it is gone"


def roll_back(actor: Actor) -> None:
    actor.told = None
    actor.session.execute("rollback")


def claim(actor: Actor) -> None:
    actor.told = None
    actor.claims = actor.session.claim("mail", worker="another")


def complete(actor: Actor) -> None:
    actor.session.complete(actor.claims)


def retry(actor: Actor) -> None:
    actor.session.retry(actor.claims)


def cancel(actor: Actor) -> None:
    ids = actor.session.column("select id from jobs_live")
    if ids:
        actor.session.cancel(*ids)


def plain_complete(actor: Actor) -> None:
    with may_be_refused("moved to another partition"):  # the client sends it again
        actor.session.plain("UPDATE jobs SET status='completed' WHERE status <> 'completed'")


def requeue(actor: Actor) -> None:
    actor.session.requeue(*actor.session.column("select id from jobs_finished"))


def plain_revival(actor: Actor) -> None:
    with may_be_refused("belongs to job"):
        actor.session.plain("UPDATE jobs SET status='pending' WHERE status = 'failed'")


def forget(actor: Actor) -> None:
    actor.session.execute("select howdah.forget_unique_keys()")


@pytest.fixture(scope="module")
def race(databases: Databases) -> Generator[Race]:
    dsn = databases.create()
    db = Database(dsn)
    yield Race(db)
    db.close()
    databases.drop(dsn)


def interleavings(*lengths: int) -> list[tuple[int, ...]]:
    """Return every order of the steps of sessions with so many steps each."""
    turns = [number for number, length in enumerate(lengths) for _ in range(length)]
    return sorted(set(permutations(turns)))


ENDS = {"committed": commit, "rolled back": roll_back}
BEGINS = {"enqueue": enqueue, "enqueue_many": enqueue_many, "plain insert": plain_insert}
OTHERS: dict[str, list[Step]] = {
    "a worker completes": [claim, complete],
    "a worker retries": [claim, retry],
    "cancel": [cancel],
    "plain complete": [plain_complete],
    "requeue": [requeue],
    "plain revival": [plain_revival],
    "forget": [forget],
}
BEFORE = ["nothing", "pending", "claimed", "failed", "failed, its key left"]


@pytest.mark.parametrize("until", ["ended", "started"])
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("begin", BEGINS)
@pytest.mark.parametrize("end", ENDS)
def test_two_producers(race: Race, until: str, before: str, begin: str, end: str) -> None:
    for other in ENDS.values():
        for order in interleavings(2, 2):
            race.run(until, before, [[BEGINS[begin], ENDS[end]], [enqueue, other]], order)
            jobs = race.db.column("select id from jobs where unique_key = %s", KEY)
            if "committed" in (end, next(k for k, v in ENDS.items() if v is other)):
                assert jobs, "one of them has committed"


@pytest.mark.parametrize("until", ["ended", "started"])
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("other", OTHERS)
def test_a_producer_and_another(race: Race, until: str, before: str, other: str) -> None:
    for begin in BEGINS.values():
        for end in ENDS.values():
            for order in interleavings(2, len(OTHERS[other])):
                race.run(until, before, [[begin, end], OTHERS[other]], order)


@pytest.mark.slow
@pytest.mark.parametrize("until", ["ended", "started"])
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("other", OTHERS)
def test_two_producers_and_another(race: Race, until: str, before: str, other: str) -> None:
    for end in ENDS.values():
        for order in interleavings(2, 2, len(OTHERS[other])):
            race.run(until, before, [[enqueue, end], [enqueue, commit], OTHERS[other]], order)


@pytest.mark.parametrize("until", ["ended", "started"])
def test_another_key_never_waits(race: Race, until: str) -> None:
    db = race.db
    db.execute("delete from jobs; delete from unique_keys")
    first, second = race.sessions[:2]
    with first.transaction():
        first.execute(enqueue_sql(until))
        second.execute(enqueue_sql(until).replace(KEY, "another"))
        second.execute(enqueue_sql(until).replace("'mail'", "'fax'"))
        late = BackgroundCall(lambda: second.value(enqueue_sql(until)))
        db.wait_until_blocked(second)
    assert late.result() == first.value(enqueue_sql(until))


def test_an_open_enqueue_delays_no_ending_of_the_job_that_it_was_told_of(race: Race) -> None:
    db, producer = race.db, race.sessions[0]
    db.execute("delete from jobs; delete from unique_keys")
    id = db.value(enqueue_sql("ended"))
    claims = db.claim("mail")
    with producer.transaction():
        assert producer.value(enqueue_sql("ended")) == id
        assert db.complete(claims) == {id}  # it does not wait
    assert db.column("select count(*) from unique_keys") == [1]  # left to the next enqueue
    again = db.value(enqueue_sql("ended"))
    assert again != id
    assert db.state_of(again) is State.PENDING


def test_two_streams_with_the_same_keys_wait_and_do_not_deadlock(race: Race) -> None:
    db = race.db
    db.execute("delete from jobs; delete from unique_keys")
    drafts = [{"job_type": "mail", "unique_key": f"k{n % 50}"} for n in range(200)]
    calls = [
        BackgroundCall(lambda session=session, drafts=order: session.enqueue_many(drafts))
        for session, order in zip(race.sessions, (drafts, drafts[::-1], drafts[100:]), strict=True)
    ]
    ids = {id for call in calls for id in call.result()}
    assert len(ids) == 50 == db.value("select count(*) from jobs")


@pytest.mark.parametrize("conflict", ["replace", "debounce"])
def test_a_change_of_a_job_that_is_claimed_at_this_moment_is_not_lost(
    race: Race, conflict: str
) -> None:
    """It waits for the claim, and then adds a job of its own."""
    db, worker, producer = race.db, *race.sessions[:2]
    db.execute("delete from jobs; delete from unique_keys")
    first = db.value(enqueue_sql("started"))
    with worker.transaction():
        assert [claim.id for claim in worker.claim("mail")] == [first]
        late = BackgroundCall(lambda: producer.value(enqueue_sql("started", conflict)))
        db.wait_until_blocked(producer)
    assert late.result() != first
    assert db.value("select count(*) from jobs") == 2


def test_a_single_statement_that_meets_a_job_does_not_keep_it_from_a_claim(race: Race) -> None:
    """A key that many clients enqueue would else keep its job waiting."""
    db, first, second = race.db, *race.sessions[:2]
    db.execute("delete from jobs; delete from unique_keys")
    id = db.value(enqueue_sql("started"))
    with first.transaction():
        first.execute("select pg_advisory_xact_lock(77)")
        late = BackgroundCall(
            lambda: second.rows(f"{enqueue_sql('started')} as id, pg_advisory_xact_lock(77)")
        )
        db.wait_until_blocked(second)  # it was told of the job, and has not ended
        assert [claim.id for claim in db.claim("mail")] == [id]
    assert [row["id"] for row in late.result()] == [id]


def test_two_enqueues_that_wait_for_the_same_claim_add_one_job(race: Race) -> None:
    """Both find the key held until the claim commits, and free then."""
    db, worker, *producers = race.db, *race.sessions
    db.execute("delete from jobs; delete from unique_keys")
    first = db.value(enqueue_sql("started"))
    with worker.transaction():
        assert [claim.id for claim in worker.claim("mail")] == [first]
        calls = [
            BackgroundCall(lambda session=session: session.value(enqueue_sql("started", "replace")))
            for session in producers
        ]
        db.wait_until_blocked(*producers)
    ids = {call.result() for call in calls}
    assert len(ids) == 1
    assert first not in ids
    assert db.value("select count(*) from jobs") == 2
