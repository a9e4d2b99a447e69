"""The functions behind steps: leases, sleeps, signals, and what becomes of the rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID, uuid4

import psycopg
import pytest

from howdah.states import State
from tests.support import Claimed, Database

pytestmark = pytest.mark.engine

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def claim(db: Database, job_type: str = "mail", worker: str = "worker") -> Claimed:
    (only,) = db.claim(job_type, worker=worker)
    return only


def stored(db: Database, id: UUID) -> list[tuple[str, str, int]]:
    rows = db.rows(
        "select kind, name, number from job_steps where job_id = %s order by 1, 2, 3", id
    )
    return [(row["kind"], row["name"], row["number"]) for row in rows]


# ── leases ──

STALE: dict[str, Callable[[Claimed], Claimed]] = {
    "another worker's": lambda lease: lease.by("another-worker"),
    "an older attempt's": lambda lease: lease._replace(attempts=lease.attempts - 1),
    "a later attempt's": lambda lease: lease._replace(attempts=lease.attempts + 1),
    "of an unknown job": lambda lease: Claimed(uuid4(), lease.worker_id, lease.attempts),
}


@pytest.mark.parametrize("stale", STALE)
def test_a_stale_lease_stores_nothing(db: Database, stale: str) -> None:
    job = db.enqueue("mail")
    lease = STALE[stale](claim(db))
    db.signal(job, "go")
    assert not db.save_step(lease)
    assert db.wait_for(lease, "go") is None
    assert not db.suspend(lease, ("signal", "go", 1))
    assert db.column("select save_checkpoints(%s, %s, %s, '{1}')", *_lease(lease)) == []
    assert db.value("select count(*) from job_steps") == 0
    assert db.value("select count(*) from job_signals where taken_at is null") == 1
    assert db.state_of(job) is State.CLAIMED


def _lease(lease: Claimed) -> tuple[str, list[UUID], list[int]]:
    return lease.worker_id, [lease.id], [lease.attempts]


def test_nobody_takes_a_job_away_while_its_step_is_stored(db: Database) -> None:
    """A worker that was given up cannot store, and one that stores is not given up meanwhile."""
    job = db.enqueue("mail")
    lease = claim(db)
    other = db.session()
    db.clock.advance(HOUR)
    with db.transaction():
        assert db.save_step(lease)
        assert other.recover_stale_jobs() == {}
    assert db.recover_stale_jobs() == {job: State.PENDING}
    assert not db.save_step(lease, "b")
    assert stored(db, job) == [("step", "a", 1)]


def test_a_stored_step_stays_as_it_is(db: Database) -> None:
    job = db.enqueue("mail")
    lease = claim(db)
    assert db.save_step(lease, "a", "first")
    assert db.save_step(lease, "a", "second"), "a call that got no answer is repeated"
    assert db.value("select result from job_steps where job_id = %s", job) == "first"


def test_a_checkpoint_replaces_the_one_before(db: Database) -> None:
    job = db.enqueue("mail")
    lease = claim(db)
    for data in ("1", "2"):
        saved = db.column(
            "select save_checkpoints(%s, %s, %s, %s::jsonb[])", *_lease(lease), [data]
        )
        assert saved == [job]
    assert db.value("select result from job_steps") == 2


@pytest.mark.parametrize("kind", ["signal", "nap", None])
def test_another_kind_of_step_is_refused(db: Database, kind: str | None) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="p_kinds must be step or sleep"):
        db.execute("select save_steps('w', %s, '{1}', %s, '{a}', '{1}')", [uuid4()], [kind])


# ── sleeps ──


def test_a_sleeping_job_holds_nothing_and_its_attempt_does_not_count(db: Database) -> None:
    job = db.enqueue("mail")
    assert db.sleep(claim(db), 3 * DAY)
    row = db.job(job)
    assert (row["status"], row["attempts"], row["worker_id"]) == ("pending", 0, None)
    db.clock.advance(3 * DAY - timedelta(seconds=1))
    assert db.promote() == set()
    db.clock.advance(timedelta(seconds=1))
    assert db.promote() == {job}
    assert claim(db).attempts == 1


def test_a_sleep_ends_at_its_time_also_where_the_clocks_change(db: Database) -> None:
    job = db.enqueue("mail")
    db.execute("set timezone = 'Europe/Berlin'")
    db.sleep(claim(db), 300 * DAY)
    assert db.value(
        "select j.run_at = s.until and s.until = s.started_at + '7200 hours' "
        "from jobs as j join job_steps as s on s.job_id = j.id where j.id = %s",
        job,
    )


def test_run_now_ends_a_sleep(db: Database) -> None:
    job = db.enqueue("mail")
    db.sleep(claim(db), DAY)
    assert db.column("select run_now(%s)", [job]) == [job]
    assert db.value("select until <= clock() from job_steps")
    claim(db)


def test_the_first_of_several_sleeps_wakes_the_job(db: Database) -> None:
    job = db.enqueue("mail")
    lease = claim(db)
    for name, lasts in (("long", DAY), ("short", HOUR)):
        db.execute(
            "select save_steps(%s, %s, %s, '{sleep}', %s, '{1}', p_lasts => %s)",
            *(*_lease(lease), [name], [lasts]),
        )
    assert db.suspend(lease, ("sleep", "long", 1), ("sleep", "short", 1))
    db.clock.advance(HOUR)
    assert db.promote() == {job}


def test_a_sleep_that_the_code_asks_for_no_more_does_not_wake_the_job(db: Database) -> None:
    db.enqueue("mail")
    lease = claim(db)
    db.execute(
        "select save_steps(%s, %s, %s, '{sleep}', '{old}', '{1}', p_lasts => '{1 hour}')",
        *_lease(lease),
    )
    db.sleep(lease, DAY)
    db.clock.advance(HOUR)
    assert db.promote() == set()


@pytest.mark.parametrize("ordered", [False, True])
def test_a_sleeping_job_gives_its_slot_back_unless_its_key_is_ordered(
    db: Database, ordered: bool
) -> None:
    db.execute("select howdah.set_type_limit('mail', 1, %s)", ordered)
    first, second = db.enqueue("mail", key="a"), db.enqueue("mail", key="a")
    db.admit()
    lease = claim(db)
    assert lease.id == first
    db.sleep(lease, DAY)
    db.admit_all()
    assert [each.id for each in db.claim("mail")] == ([] if ordered else [second])


def test_an_expired_job_does_not_wake(db: Database) -> None:
    job = db.enqueue("mail")
    db.execute("update jobs set expires_at = clock() + '1 hour' where id = %s", job)
    db.sleep(claim(db), DAY)
    db.clock.advance(2 * HOUR)
    assert db.expire() == {job}


# ── signals ──


def test_a_signal_wakes_the_job_that_waits_for_it(db: Database) -> None:
    job = db.enqueue("mail")
    lease = claim(db)
    answer = db.wait_for(lease, "go")
    assert answer is not None
    assert (answer["ended"], answer["timed_out"], answer["data"]) == (False, False, None)
    db.suspend(lease, ("signal", "go", 1))
    db.clock.advance(100 * DAY)
    assert db.promote() == set(), "without a timeout it waits for ever"
    assert not db.signal(job, "stop")
    assert db.claim("mail") == []
    assert db.signal(job, "go", {"by": "ann"})
    answer = db.wait_for(claim(db), "go")
    assert answer is not None
    assert (answer["ended"], answer["data"]) == (True, {"by": "ann"})


def test_a_signal_that_came_first_is_taken_at_once(db: Database) -> None:
    job = db.enqueue("mail")
    assert not db.signal(job, "go", 1)
    answer = db.wait_for(claim(db), "go")
    assert answer is not None
    assert (answer["ended"], answer["data"]) == (True, 1)


def test_each_wait_takes_one_signal_in_their_order(db: Database) -> None:
    job = db.enqueue("mail")
    for data in (1, 2, 3):
        db.signal(job, "go", data)
    lease = claim(db)
    answers = [db.wait_for(lease, "go", number) for number in (1, 2, 1)]
    assert [answer and answer["data"] for answer in answers] == [1, 2, 1]
    assert db.value("select count(*) from job_signals where taken_at is null") == 1


def test_a_wait_that_timed_out_stays_so_and_the_signal_is_for_the_next(db: Database) -> None:
    job = db.enqueue("mail")
    lease = claim(db)
    db.wait_for(lease, "go", timeout=HOUR)
    db.suspend(lease, ("signal", "go", 1))
    db.clock.advance(HOUR)
    assert db.promote() == {job}
    lease = claim(db)
    answer = db.wait_for(lease, "go", timeout=DAY)
    assert answer is not None
    assert (answer["ended"], answer["timed_out"]) == (True, True)
    db.signal(job, "go", "late")
    again = db.wait_for(lease, "go")
    assert again is not None
    assert again["timed_out"]
    second = db.wait_for(lease, "go", 2)
    assert second is not None
    assert second["data"] == "late"


def test_a_signal_between_the_question_and_the_sleep_is_not_lost(db: Database) -> None:
    job = db.enqueue("mail")
    lease = claim(db)
    db.wait_for(lease, "go")
    assert not db.signal(job, "go")
    db.suspend(lease, ("signal", "go", 1))
    assert claim(db).id == job, "it is in line at once"


def test_a_signal_does_not_end_the_backoff_of_a_failed_attempt(db: Database) -> None:
    """The wait is stored, but the job waits for its retry."""
    job = db.enqueue("mail")
    lease = claim(db)
    db.wait_for(lease, "go")
    db.retry([lease], delay=DAY)
    assert not db.signal(job, "go")
    assert db.claim("mail") == []


def test_a_signal_does_not_end_a_sleep_beside_the_wait(db: Database) -> None:
    job = db.enqueue("mail")
    lease = claim(db)
    db.wait_for(lease, "go")
    db.execute(
        "select save_steps(%s, %s, %s, '{sleep}', '{nap}', '{1}', p_lasts => '{1 hour}')",
        *_lease(lease),
    )
    db.suspend(lease, ("signal", "go", 1), ("sleep", "nap", 1))
    assert db.signal(job, "go")
    assert db.value("select until > clock() from job_steps where kind = 'sleep'")


def test_a_job_of_an_ordered_key_waits_and_goes_on(db: Database) -> None:
    db.execute("select howdah.set_type_limit('mail', 1, true)")
    first, second = db.enqueue("mail", key="a"), db.enqueue("mail", key="a")
    db.admit()
    lease = claim(db)
    (follower,) = db.claim_run([lease])
    assert follower.id == second
    db.wait_for(lease, "go")
    db.suspend(lease, ("signal", "go", 1))
    db.release([follower])
    db.admit_all()
    assert db.claim("mail") == []
    assert db.signal(first, "go")
    db.admit_all()
    assert claim(db).id == first


@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
def test_a_signal_to_a_job_that_has_ended_is_refused(db: Database, end: str) -> None:
    job = db.enqueue("mail")
    lease = claim(db)
    if end == "cancel":
        db.cancel(job)
    else:
        {"complete": db.complete, "fail": db.fail}[end]([lease])
    with pytest.raises(psycopg.Error, match=f"job {job} has ended as .*cannot get the signal go"):
        db.signal(job, "go")
    assert db.value("select count(*) from job_signals") == 0


def test_a_signal_to_an_unknown_job_is_refused(db: Database) -> None:
    with pytest.raises(psycopg.Error, match="there is no job"):
        db.signal(uuid4(), "go")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("howdah.signal(null, 'go')", "p_id must be the id of a job"),
        ("howdah.signal(new_id(), null)", "the name of a signal must have 1 to 200 characters"),
        ("howdah.signal(new_id(), '')", "the name of a signal must have 1 to 200 characters"),
        ("howdah.signal(new_id(), repeat('x', 201))", "the name of a signal must have 1 to 200"),
        ("howdah.signal(new_id(), E'a\\nb')", "none of them a control character"),
        (
            "howdah.signal(new_id(), 'go', to_jsonb(repeat('x', 300000)))",
            "the data of the signal has 300002 bytes; the limit is 262144",
        ),
    ],
)
def test_bad_signals_are_named(db: Database, sql: str, message: str) -> None:
    with pytest.raises(psycopg.Error, match=message):
        db.execute(f"select {sql}")


# ── what becomes of the rows ──


def test_requeue_keeps_the_steps_and_a_clone_has_none(db: Database) -> None:
    job = db.enqueue("mail")
    lease = claim(db)
    db.save_step(lease)
    db.fail([lease])
    db.requeue(job)
    assert stored(db, job) == [("step", "a", 1)]
    clone = db.value("select clone_id from clone(%s)", [job])
    assert stored(db, clone) == []


@pytest.mark.parametrize("how", ["prune", "delete"])
def test_the_rows_go_with_the_job(db: Database, how: str) -> None:
    gone, live = db.enqueue("mail"), db.enqueue("mail")
    for lease in db.claim("mail"):
        db.save_step(lease)
        db.signal(lease.id, "go")
        if lease.id == gone:
            db.complete([lease])
    if how == "prune":
        db.prune()
        assert stored(db, gone) == [("step", "a", 1)]
        db.clock.advance(10 * DAY)
        db.prune()
    else:
        db.execute("select howdah.delete(%s)", [gone])
    assert stored(db, gone) == []
    assert stored(db, live) == [("step", "a", 1)]
    assert db.column("select job_id from job_signals") == [live]
