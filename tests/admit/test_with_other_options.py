"""A job may have a concurrency key, a unique key and an expiry at once: each keeps its promise."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from howdah import Queue
from howdah.states import State
from tests.support import Database

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)

ALL = "p_key => 'a', p_unique_key => 'u', p_expires => '1 hour'"


def enqueue(db: Database, arguments: str = ALL) -> UUID:
    return db.value(f"select howdah.enqueue('mail', {arguments})")


def order(db: Database) -> None:
    db.execute("select howdah.set_type_limit('mail', 1, true)")


def rows_of_keys(db: Database) -> int:
    return db.value("select count(*) from unique_keys")


def claim_ids(db: Database) -> list[UUID]:
    return [claim.id for claim in db.claim("mail")]


# ── every way to enqueue ──


def check_all(row: dict[str, Any]) -> None:
    assert (row["key"], row["unique_key"], row["unique_until"]) == ("a", "u", "ended")
    assert (row["admission"], row["ready_at"]) == ("slot", None)
    assert row["arrival"] is not None
    assert row["expires_at"] > row["created_at"]


@pytest.mark.engine
def test_enqueue_and_enqueue_many_take_them_together(db: Database) -> None:
    first = enqueue(db)
    check_all(db.job(first))
    assert enqueue(db) == first
    draft = {"job_type": "mail", "key": "a", "unique_key": "u", "expires": "1 hour"}
    assert db.enqueue_many([draft, draft]) == [first, first]
    db.cancel(first)
    second, again, plain = db.enqueue_many([draft, draft, {"job_type": "mail"}])
    assert again == second
    check_all(db.job(second))
    assert db.value("select count(*) from jobs_live") == 2
    db.admit()
    assert set(claim_ids(db)) == {second, plain}


@pytest.mark.engine
def test_a_plain_insert_takes_them_together(db: Database) -> None:
    insert = (
        "insert into jobs (job_type, key, unique_key, unique_until, expires_at) "
        "values ('mail', 'a', 'u', 'ended', now() + interval '1 hour') returning id"
    )
    first = db.value(insert)
    check_all(db.job(first))
    with pytest.raises(psycopg.Error) as caught:
        db.execute(insert)
    assert caught.value.sqlstate == "HW007"
    db.admit()
    assert claim_ids(db) == [first]


@pytest.mark.engine
@pytest.mark.parametrize("expires", ["p_expires => '1 hour'", "p_expires_at => now() + '1 hour'"])
def test_enqueue_now_takes_a_key_and_an_expiry(db: Database, expires: str) -> None:
    db.execute(
        "call howdah.enqueue_now('mail', '{}', null, null, null, howdah.new_id(), null, "
        f"{'p_expires_at => null, ' if 'expires =>' in expires else ''}{expires}, p_key => 'a')"
    )
    (row,) = db.rows("select * from jobs")
    assert (row["key"], row["admission"]) == ("a", "slot")
    assert row["expires_at"] > row["created_at"]


@pytest.mark.engine
def test_a_type_that_expires_and_has_a_limit(db: Database) -> None:
    """Neither has to be named: both come from the rules of the type."""
    db.execute("""select howdah.register_job_types('w', '[{"name": "mail", "expires": "1 h"}]')""")
    db.execute(
        "select howdah.set_limit('api', 1), howdah.set_type_limit('mail', null, false, 'api')"
    )
    db.execute("select howdah.enqueue('mail')")
    db.execute(
        "call howdah.enqueue_now('mail', '{}', null, null, null, howdah.new_id(), null, "
        "p_expires_at => null)"
    )
    db.enqueue_many([{"job_type": "mail"}])
    db.plain("insert into jobs (job_type) values ('mail')")
    rows = db.rows("select * from jobs")
    assert len(rows) == 4
    for row in rows:
        assert (row["admission"], row["limited_by"]) == ("limit", "api")
        assert row["expires_at"] > row["created_at"]


async def test_a_stream_keeps_the_options_of_each_draft(queue: Queue) -> None:
    """Drafts without options are copied; the others go by a call, with all their options."""

    @queue.job(key="to", expires=HOUR)
    async def mail(to: str) -> None: ...

    @queue.job(limit="api")
    async def fetch(url: str) -> None: ...

    @queue.job
    async def plain() -> None: ...

    queue.limit("api", at_once=1)
    async with queue.worker(concurrency=1, job_types=["plain"]):
        pass
    await queue.store.fetchval("select howdah.set_limit('api', 1)")
    await queue.store.fetchval("select howdah.set_type_limit('fetch', null, false, 'api')")
    unique = mail.options(unique="to")
    drafts = [
        plain.draft(),
        unique.draft("a"),
        fetch.draft("x"),
        unique.draft("a"),
        mail.draft("a"),
    ]
    assert await queue.enqueue_many(drafts) == 4
    rows = await queue.store.fetch(
        "select job_type, key, unique_key is not null, expires_at > created_at, admission "
        "from howdah.jobs order by job_type, unique_key nulls last"
    )
    assert [tuple(row) for row in rows] == [
        ("fetch", None, False, None, "limit"),
        ("mail", "a", True, True, "slot"),
        ("mail", "a", False, True, "slot"),
        ("plain", None, False, None, None),
    ]


async def test_one_job_with_all_options_by_each_call(queue: Queue) -> None:
    @queue.job(key="to", expires=HOUR, unique="to")
    async def mail(to: str) -> None: ...

    first = await mail.enqueue("a")
    second = await queue.enqueue("mail", {"to": "a"})
    assert (first.existed, second.existed, second.id) == (False, True, first.id)
    third = await mail.options(unique=False).enqueue("a")
    fourth = await mail.options(unique=False, expires=MINUTE).enqueue("a")
    for handle in (first, third, fourth):
        job = await handle.job()
        assert job.expires_at is not None
        (row,) = await queue.store.fetch(
            "select key, admission from howdah.jobs where id = $1", job.id
        )
        assert tuple(row) == ("a", "slot")


# ── a job that expires ──


@pytest.mark.engine
def test_a_job_that_expires_while_it_waits_for_a_slot_is_cancelled(db: Database) -> None:
    holder = enqueue(db, "p_key => 'a'")
    db.admit()
    waiting = enqueue(db)
    later = enqueue(db, "p_key => 'a'")
    db.clock.advance(2 * HOUR)
    assert db.expire() == {waiting}
    assert rows_of_keys(db) == 0
    db.admit_all()
    assert db.admitted() == [holder]
    db.complete(db.claim("mail"))
    assert claim_ids(db) == [later]


@pytest.mark.engine
def test_the_request_of_a_job_that_expired_does_no_harm(db: Database) -> None:
    waiting = enqueue(db)
    db.clock.advance(2 * HOUR)
    assert db.expire() == {waiting}
    assert db.admit() == 0
    assert db.value("select count(*) from admission_requests") == 0


@pytest.mark.engine
@pytest.mark.parametrize("ordered", [False, True])
def test_a_job_that_expires_in_line_hands_its_slot_over(db: Database, ordered: bool) -> None:
    if ordered:
        order(db)
    first = enqueue(db)
    second = enqueue(db, "p_key => 'a'")
    db.admit()
    assert db.admitted() == [first]
    db.clock.advance(2 * HOUR)
    assert claim_ids(db) == []
    assert db.expire() == {first}
    assert db.admitted() == [second]
    assert claim_ids(db) == [second]


@pytest.mark.engine
def test_a_job_that_expires_hands_over_the_slot_of_its_limit(db: Database) -> None:
    db.execute("select howdah.set_limit('api', 1), howdah.set_type_limit('mail', 1, false, 'api')")
    first = enqueue(db)
    db.admit()
    second = enqueue(db, "p_key => 'b'")
    db.admit()
    assert (db.admission_of(first), db.admission_of(second)) == ("admitted", "limit")
    db.clock.advance(2 * HOUR)
    (row,) = db.upkeep()
    assert row["expired"] == 1
    assert claim_ids(db) == [second]


@pytest.mark.engine
def test_an_ordered_job_that_expires_before_its_retry_hands_its_slot_over(db: Database) -> None:
    order(db)
    first = enqueue(db)
    second = enqueue(db, "p_key => 'a'")
    db.admit()
    db.retry(db.claim("mail"), delay=MINUTE)
    assert db.admission_of(first) == "backoff"
    db.clock.advance(2 * HOUR)
    assert db.expire() == {first}
    assert claim_ids(db) == [second]


@pytest.mark.engine
def test_an_ordered_job_that_expires_during_its_attempt_ends_with_it(db: Database) -> None:
    order(db)
    first = enqueue(db)
    second = enqueue(db, "p_key => 'a'")
    db.admit()
    claims = db.claim("mail")
    db.clock.advance(2 * HOUR)
    assert db.retry(claims) == {first: State.FAILED}
    assert (rows_of_keys(db), db.admitted()) == (0, [second])


@pytest.mark.engine
def test_an_ordered_job_that_expires_with_a_lost_worker_ends(db: Database) -> None:
    order(db)
    first = enqueue(db)
    second = enqueue(db, "p_key => 'a'")
    db.admit()
    db.claim("mail")
    db.clock.advance(2 * HOUR)
    assert db.recover_stale_jobs() == {first: State.FAILED}
    assert (rows_of_keys(db), db.admitted()) == (0, [second])


# ── a unique job that waits ──


@pytest.mark.engine
def test_until_started_the_unique_key_is_kept_while_it_waits_for_a_slot(db: Database) -> None:
    until = "p_key => 'a', p_unique_key => 'u', p_unique_until => 'started'"
    holder = enqueue(db, "p_key => 'a'")
    db.admit()
    job = enqueue(db, until)
    assert enqueue(db, until) == job
    db.admit()
    assert (db.admission_of(job), enqueue(db, until)) == ("slot", job)
    assert claim_ids(db) == [holder]
    db.cancel(holder)
    assert (db.admission_of(job), enqueue(db, until)) == ("admitted", job)
    assert claim_ids(db) == [job]
    assert enqueue(db, until) != job


@pytest.mark.engine
def test_replace_changes_only_the_payload_of_a_job_that_waits(db: Database) -> None:
    enqueue(db, "p_key => 'a'")
    db.admit()
    job = enqueue(db)
    before = db.job(job)
    assert enqueue(db, f"p_data => '{{\"to\": 1}}', p_on_conflict => 'replace', {ALL}") == job
    assert db.job(job) == {**before, "data": {"to": 1}}


def debounce(db: Database, arguments: str = "") -> UUID:
    return enqueue(db, f"p_on_conflict => 'debounce', p_key => 'a', p_unique_key => 'u'{arguments}")


@pytest.mark.engine
def test_debounce_of_a_job_that_waits_for_a_slot(db: Database) -> None:
    holder = enqueue(db, "p_key => 'a'")
    db.admit()
    job = enqueue(db)
    assert debounce(db, ", p_delay => '1 minute'") == job
    assert (db.admission_of(job), db.job(job)["ready_at"]) == ("time", None)
    db.cancel(holder)
    db.admit_all()
    assert db.admission_of(job) == "time"
    db.clock.advance(2 * MINUTE)
    assert db.promote() == {job}
    db.admit()
    assert claim_ids(db) == [job]


@pytest.mark.engine
def test_debounce_to_now_of_a_job_that_waits_for_its_time(db: Database) -> None:
    holder = enqueue(db, "p_key => 'a'")
    job = enqueue(db, f"p_delay => '1 minute', {ALL}")
    db.admit()
    assert debounce(db) == job
    assert (db.admission_of(job), db.job(job)["ready_at"]) == ("slot", None)
    assert claim_ids(db) == [holder]
    db.cancel(holder)
    assert claim_ids(db) == [job]


@pytest.mark.engine
def test_debounce_to_now_finds_a_free_slot(db: Database) -> None:
    job = enqueue(db, f"p_delay => '1 minute', {ALL}")
    db.admit_all()
    debounce(db)
    db.admit()
    assert claim_ids(db) == [job]


@pytest.mark.engine
def test_debounce_to_now_of_a_job_that_waits_for_a_slot_does_not_pass_the_limit(
    db: Database,
) -> None:
    enqueue(db, "p_key => 'a'")
    db.admit()
    job = enqueue(db)
    assert debounce(db) == job
    assert (db.admission_of(job), db.job(job)["ready_at"]) == ("slot", None)


@pytest.mark.engine
@pytest.mark.parametrize("limited", [False, True])
def test_debounce_of_a_job_in_line_hands_its_slots_over(db: Database, limited: bool) -> None:
    if limited:
        db.execute("select howdah.set_limit('api', 1)")
        db.execute("select howdah.set_type_limit('mail', 1, false, 'api')")
    job = enqueue(db)
    second = enqueue(db, "p_key => 'a'")
    db.admit_all()
    assert db.admitted() == [job]
    assert debounce(db, ", p_delay => '1 minute'") == job
    db.admit_all()
    assert db.admission_of(job) == "time"
    assert claim_ids(db) == [second]


@pytest.mark.engine
def test_debounce_of_a_job_that_waits_for_its_limit_hands_over_the_slot_of_its_key(
    db: Database,
) -> None:
    db.execute("select howdah.set_limit('api', 1), howdah.set_type_limit('mail', 1, false, 'api')")
    holder = enqueue(db, "p_key => 'b'")
    db.admit_all()
    job = enqueue(db)
    second = enqueue(db, "p_key => 'a'")
    db.admit_all()
    assert (db.admission_of(job), db.admission_of(second)) == ("limit", "slot")
    debounce(db, ", p_delay => '1 minute'")
    assert (db.admission_of(job), db.admission_of(second)) == ("time", "limit")
    assert claim_ids(db) == [holder]


@pytest.mark.engine
def test_debounce_of_an_ordered_job_keeps_its_slot(db: Database) -> None:
    order(db)
    job = enqueue(db)
    second = enqueue(db, "p_key => 'a'")
    db.admit_all()
    debounce(db, ", p_delay => '1 minute'")
    db.admit_all()
    assert (db.admission_of(job), db.admission_of(second)) == ("backoff", "slot")
    assert debounce(db) == job
    assert claim_ids(db) == [job]


# ── what ends, and what comes back ──


@pytest.mark.engine
def test_an_end_gives_back_the_unique_key_and_the_slot(db: Database) -> None:
    enqueue(db)
    second = enqueue(db, "p_key => 'a'")
    db.admit()
    db.complete(db.claim("mail"))
    assert (rows_of_keys(db), db.admitted()) == (0, [second])


@pytest.mark.engine
@pytest.mark.parametrize("how", ["UPDATE", "DELETE"])
def test_a_plain_end_frees_the_unique_key_and_the_slot(db: Database, how: str) -> None:
    first = enqueue(db)
    second = enqueue(db, "p_key => 'a'")
    db.admit()
    if how == "UPDATE":
        db.claim("mail")
        db.plain("update jobs set status = 'completed' where id = $1", first)
    else:
        db.execute("alter table jobs_live disable trigger guard_leaving")  # which forbids it
        db.plain("delete from jobs where id = $1", first)
        db.execute("alter table jobs_live enable trigger guard_leaving")
    db.admit()
    assert db.admitted() == [second]
    assert enqueue(db) != first


@pytest.mark.engine
@pytest.mark.parametrize("how", ["requeue", "plain UPDATE"])
def test_a_job_that_comes_back_waits_with_its_key_and_its_unique_key(
    db: Database, how: str
) -> None:
    job = enqueue(db)
    holder = enqueue(db, "p_key => 'a'")
    db.cancel(job)
    db.admit()

    def come_back() -> bool:
        if how == "requeue":
            return db.requeue(job) == {job}
        return db.plain("update jobs set status = 'pending' where id = $1", job) == 1

    other = enqueue(db)
    if how == "requeue":
        assert not come_back()
    else:
        with pytest.raises(psycopg.Error, match="belongs to job"):
            come_back()
    db.cancel(other)
    assert come_back()
    row = db.job(job)
    assert (row["key"], row["unique_key"], row["admission"]) == ("a", "u", "slot")
    assert row["expires_at"] is not None
    assert enqueue(db) == job
    assert claim_ids(db) == [holder]
    db.cancel(holder)
    db.admit()
    assert claim_ids(db) == [job]


@pytest.mark.engine
def test_a_job_that_expired_comes_back_without_its_expiry(db: Database) -> None:
    job = enqueue(db)
    db.admit()
    db.clock.advance(2 * HOUR)
    db.expire()
    db.requeue(job)
    db.admit()
    assert (claim_ids(db), db.job(job)["expires_at"]) == ([job], None)


@pytest.mark.engine
def test_a_clone_has_the_key_and_an_expiry_and_no_unique_key(db: Database) -> None:
    job = enqueue(db)
    db.admit()
    clone = db.value("select clone_id from howdah.clone(%s)", [job])
    row = db.job(clone)
    assert (row["key"], row["unique_key"], row["admission"]) == ("a", None, "slot")
    assert row["expires_at"] > row["created_at"]
    assert enqueue(db) == job
