"""One key or one limit, two and three sessions: every order of their statements is right.

At every commit no more jobs hold a slot than there are, and at the end no job waits for ever: once
`admit` has nothing more to look at, all jobs can be run, in the order of enqueueing where that is
promised. Broken engines show that the orders include those that matter.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple
from uuid import UUID

import pytest

from tests.admit.broken import break_engine
from tests.races.interleaving import Script, Step, commit, orders, rollback, run
from tests.support import Claimed, Database, Session
from tests.support.background import BackgroundCall
from tests.support.database import claims_of
from tests.support.databases import Databases

pytestmark = [pytest.mark.engine, pytest.mark.slow]

HOLDERS = """
    select count(*) from jobs_live where {} = %s and admission = any(%s)
    and (worker_id is null or ready_at is not null)  -- not those that follow in a run
"""


class Rule(NamedTuple):
    """What limits the jobs of the race, and how they name it."""

    set: Sequence[str]
    slots: int
    column: str = "key"
    states: Sequence[str] = ("admitted", "backoff", "limit")
    ordered: bool = False


RULES = {
    "one slot": Rule(["select howdah.set_type_limit('mail', 1)"], 1),
    "two slots": Rule(["select howdah.set_type_limit('mail', 2)"], 2),
    "ordered": Rule(["select howdah.set_type_limit('mail', 1, true)"], 1, ordered=True),
    "a limit": Rule(
        [
            "select howdah.set_limit('api', 1)",
            "select howdah.set_type_limit('mail', null, false, 'api')",
        ],
        1,
        "limited_by",
        ("admitted",),
    ),
}


class Start(NamedTuple):
    """The jobs before the race: those that a worker holds, and those that wait."""

    held: list[Claimed]
    waiting: list[UUID]
    run: Sequence[Claimed] = ()  # what the worker holds behind the last of `held`


Write = Callable[[Session, Start], object]

SETTLE: dict[str, Write] = {
    "complete": lambda s, on: s.complete(on.held[:1]),
    "complete and claim": lambda s, on: s.complete_and_claim(on.held[:1], "mail"),
    "cancel": lambda s, on: s.cancel(on.held[0].id),
    "retry": lambda s, on: s.retry(on.held[:1]),
    "plain complete": lambda s, on: s.plain(
        "UPDATE jobs SET status='completed', progress=100, completed_at=now() WHERE id=$1",
        on.held[0].id,
    ),
}


def enqueue(session: Session, _: Start) -> object:
    return session.enqueue("mail", key="a")


def plain_insert(session: Session, _: Start) -> object:
    return session.execute("insert into jobs (job_type, key) values ('mail', 'a')")


def admit(session: Session, _: Start) -> object:
    return session.admit()


def cancel_waiting(session: Session, on: Start) -> object:
    return session.cancel(*on.waiting[:1])


def complete_last(session: Session, on: Start) -> object:
    return session.complete(on.held[-1:])


class Race:
    """One database with a rule, used for one race after another."""

    def __init__(self, db: Database, rule: Rule) -> None:
        self.db = db
        self.rule = rule
        self.usable = True  # not after a failure: a session may be in the middle of a transaction
        self.watcher = db.session()
        self.sessions = [db.session() for _ in range(3)]

    def start(self, held: int, waiting: int, run: int = 0) -> Start:
        db = self.db
        db.execute("delete from admission_requests; delete from rate_states; delete from jobs_live")
        db.execute("delete from jobs; delete from admission_requests")
        if not db.value("select count(*) from type_limits"):
            for statement in self.rule.set:
                db.execute(statement)
            db.admit_all()
        db.execute("update type_limits set counted = false; update limits set counted = false")
        jobs = [db.enqueue("mail", key="a", max_attempts=9) for _ in range(held + run + waiting)]
        if not held:
            return Start([], jobs)
        db.admit_all()
        claims = db.claim("mail")
        assert {claim.id for claim in claims} == set(jobs[:held])
        following = db.claim_run(claims, run) if run else []
        assert [claim.id for claim in following] == jobs[held : held + run]
        return Start(claims, jobs[held + run :], following)

    def check(
        self,
        held: int,
        waiting: int,
        writes: Sequence[tuple[Write, bool]],
        *,
        follow: int = 0,
        put_back: bool = False,
    ) -> None:
        """Run every order of these transactions; each is a write, and whether it commits.

        With `put_back` one of them puts the first held job back: its run must go back too.
        """
        self.usable = False
        for order in orders([2] * len(writes)):
            on = self.start(held, waiting, follow)
            scripts: list[Script] = [
                [_open(write, on), commit if commits else rollback] for write, commits in writes
            ]
            run(self.db, self.sessions, scripts, order, self._check_slots)
            if put_back and not self.db.holds(on.held[0]):
                assert self.db.held_in_runs() == [], f"order {order}: its run did not go back"
            self._check_the_end(order, on)
        self.usable = True

    def _check_slots(self) -> None:
        rule = self.rule
        name = "a" if rule.column == "key" else "api"
        holders = self.watcher.value(HOLDERS.format(rule.column), name, list(rule.states))
        assert holders <= rule.slots, f"{holders} jobs hold a slot"

    def _check_the_end(self, order: Sequence[int], on: Start) -> None:
        """Run everything that is left: nothing waits for ever, and the order is kept."""
        db = self.db
        db.complete([claim for claim in on.held if db.holds(claim)])
        db.release(db.held_in_runs())
        left = db.column("select id from jobs_live order by arrival")
        claims = claims_of(
            db.rows("select * from jobs_live where worker_id is not null order by arrival")
        )
        ran = [claim.id for claim in claims]
        if claims:
            db.complete(claims)
        while True:
            db.admit_all()
            self._check_slots()
            db.rows(
                "select howdah.run_now(array(select id from jobs_live where admission = 'backoff'))"
            )
            claims = db.claim("mail")
            if not claims:
                break
            ran += [claim.id for claim in claims]
            db.complete(claims)
        assert set(ran) == set(left), f"order {order}: {len(left) - len(ran)} jobs wait for ever"
        if self.rule.ordered:
            assert ran == left, f"order {order}: not in the order of enqueueing"


def _open(write: Write, on: Start) -> Step:
    """Return the step that begins a transaction and writes in it."""

    def step(session: Session) -> None:
        session.execute("begin")
        write(session, on)

    return step


class Races:
    """One race for each rule. Its sessions keep their plans from one test to the next."""

    def __init__(self, databases: Databases) -> None:
        self._databases = databases
        self._races: dict[str, Race] = {}

    def __getitem__(self, rule: str) -> Race:
        race = self._races.get(rule)
        if race is None or not race.usable:
            self._close(rule)
            race = self._races[rule] = Race(Database(self._databases.create()), RULES[rule])
        return race

    def _close(self, rule: str) -> None:
        if (race := self._races.pop(rule, None)) is not None:
            race.db.close()
            self._databases.drop(race.db.dsn)

    def close(self) -> None:
        for rule in list(self._races):
            self._close(rule)


@pytest.fixture(scope="session")
def races(databases: Databases) -> Generator[Races]:
    made = Races(databases)
    yield made
    made.close()


@pytest.fixture
def database(databases: Databases) -> Generator[Database]:
    """Yield a database for one test alone, such as one that breaks the engine."""
    dsn = databases.create()
    db = Database(dsn)
    yield db
    db.close()
    databases.drop(dsn)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("settle", SETTLE)
def test_an_end_and_an_arrival(races: Races, rule: str, settle: str) -> None:
    race = races[rule]
    arrive = plain_insert if settle == "plain complete" else enqueue
    slots = RULES[rule].slots
    for waiting in (0, 1):
        for commits in (True, False):
            race.check(slots, waiting, [(SETTLE[settle], commits), (arrive, True)])


@pytest.mark.parametrize("rule", RULES)
def test_two_ends_and_two_arrivals(races: Races, rule: str) -> None:
    race = races[rule]
    slots = RULES[rule].slots
    race.check(
        slots,
        2,
        [(SETTLE["complete"], True), (complete_last, True)]
        if slots > 1
        else [(SETTLE["complete"], True), (cancel_waiting, True)],
    )
    race.check(0, 0, [(enqueue, True), (enqueue, False)])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("settle", ["complete", "complete and claim", "plain complete"])
def test_an_end_an_arrival_and_a_look(races: Races, rule: str, settle: str) -> None:
    writes = [(SETTLE[settle], True), (enqueue, True), (admit, True)]
    races[rule].check(RULES[rule].slots, 0, writes)


@pytest.mark.parametrize("rule", ["one slot", "two slots", "a limit"])
@pytest.mark.parametrize("waiting", [0, 1])
def test_a_hand_over_that_searches_behind_the_job_that_has_ended(
    database: Database, rule: str, waiting: int
) -> None:
    database.execute("select setval('howdah.search_behind_until', 32503680000000)")
    writes = [(SETTLE["complete"], True), (enqueue, True), (admit, True)]
    Race(database, RULES[rule]).check(RULES[rule].slots, waiting, writes)


@pytest.mark.parametrize("rule", ["one slot", "two slots", "a limit"])
def test_two_looks_and_an_arrival(races: Races, rule: str) -> None:
    races[rule].check(0, 2, [(admit, True), (admit, True), (enqueue, True)])


def test_one_session_admits_at_a_time(database: Database) -> None:
    database.enqueue("mail", key="a")
    first, second = database.session(), database.session()
    with first.transaction():
        first.admit()
        assert second.rows("select * from howdah.admit()") == []
    assert len(second.rows("select * from howdah.admit()")) == 1


FOUND = {
    "no check that somebody will look again at a key": ("one slot", "complete"),
    "no check that somebody will look again at a limit": ("a limit", "complete"),
    "an arrival requests no look": ("ordered", "complete"),
    "a plain end requests no look": ("one slot", "plain complete"),
}


@pytest.mark.parametrize("what", FOUND)
def test_a_broken_engine_is_found(database: Database, what: str) -> None:
    break_engine(database, what)
    rule, settle = FOUND[what]
    writes = [(SETTLE[settle], True), (enqueue, True), (admit, True)]
    with pytest.raises(AssertionError, match=r"wait for ever|Extra items"):
        Race(database, RULES[rule]).check(1, 0, writes)


PAUSE = 7  # an advisory lock: who moves a waiting job on waits for it
PAUSED = f"""
    create function pause() returns trigger language plpgsql as
    $$ begin perform pg_advisory_xact_lock_shared({PAUSE}); return new; end $$;
    create trigger pause before update of admission on howdah.jobs_live
    for each row execute function pause()
"""


@pytest.mark.parametrize("limited", [False, True])
def test_a_waiting_job_that_changes_before_it_is_locked(database: Database, limited: bool) -> None:
    """A hand-over of two slots has moved one job on; somebody changes the other before its turn."""
    db = database
    if limited:
        db.execute("select howdah.set_limit('tenants', 1, p_per_key => true)")
        db.execute("select howdah.set_type_limit('mail', null, false, 'tenants')")
        db.admit_all()
    for key in ("a", "b") * 2:
        db.enqueue("mail", key=key)
    db.admit_all()
    held = db.claim("mail")
    assert len(held) == 2
    db.execute(PAUSED)
    ender, meddler = db.session(), db.session()
    with meddler.transaction():
        meddler.execute("select pg_advisory_xact_lock(%s)", PAUSE)
        ending = BackgroundCall(lambda: ender.complete(held))
        db.wait_until_blocked(ender)
        changed = db.execute(
            "update jobs_live set watched = true where id in ("
            "select id from jobs_live where worker_id is null for update skip locked)"
        )
    assert changed == 1
    assert ending.result() == {claim.id for claim in held}
    assert db.value("select count(*) from admission_requests") == 1, "one was left to admit"
    db.admit_all()
    assert len(db.claim("mail")) == 2
