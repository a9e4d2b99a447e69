"""Failures with the same error text, apart from numbers and names, form one group."""

from __future__ import annotations

import pytest
from psycopg.types.json import Jsonb

from howdah import observe
from tests.observe.support import HOUR, open_store
from tests.support import Database

SAME = [
    ("ValueError: bad id 17", "ValueError: bad id 4711"),
    ("KeyError: 'kim'", "KeyError: 'lee lou'"),
    ('no column "a"', 'no column "b.c"'),
    (
        "job 01a1df06-3822-740d-837f-465d23b27bc6 gone",
        "job 91A1DF06-3822-740D-837F-465D23B27BC6 gone",
    ),
    ("<X object at 0x7f3a>", "<X object at 0xDEADBEEF01>"),
    ("commit 9b77b35aa0 lost", "commit f099a75b11 lost"),
    ("took 1.5 s", "took 12:30 s"),
    ("one\nTraceback 1", "one\nTraceback 2"),
    ("a   b", "a b"),
]
DIFFERENT = [
    ("ValueError: no", "KeyError: no"),
    ("can't open it, don't", "can't close it, don't"),
    ("connection refused", "connection reset"),
    ("deadbeefs are words", "feedback is a word"),
]


def fingerprint(db: Database, error: str) -> str:
    return db.value("select howdah.fingerprint(%s)", error)


@pytest.mark.engine
@pytest.mark.parametrize(("first", "second"), SAME)
def test_numbers_ids_hex_and_quoted_text_do_not_change_the_fingerprint(
    db: Database, first: str, second: str
) -> None:
    assert fingerprint(db, first) == fingerprint(db, second)


@pytest.mark.engine
@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_words_change_the_fingerprint(db: Database, first: str, second: str) -> None:
    assert fingerprint(db, first) != fingerprint(db, second)


@pytest.mark.engine
def test_a_fingerprint_reads_like_the_error(db: Database) -> None:
    error = "  ValueError: no route to 10.0.0.1:8080 for 'kim' (0xff)  \nmore"
    assert fingerprint(db, error) == "ValueError: no route to <n> for <text> (<hex>)"
    assert fingerprint(db, "") == ""
    assert len(fingerprint(db, "word " * 100_000)) <= 500


def fail(db: Database, job_type: str, *errors: str) -> None:
    for error in errors:
        db.enqueue(job_type)
        db.fail(db.claim(job_type), error)


async def test_the_same_errors_of_a_type_are_one_group_with_a_trend(db: Database) -> None:
    fail(db, "mail", "no route to 1", "no route to 2")
    db.clock.advance(3 * HOUR)
    fail(db, "mail", "no route to 3", "other")
    fail(db, "report", "no route to 4")
    db.cancel(db.enqueue("mail"))
    async with open_store(db) as store:
        failures = await observe.failures(store)
        assert (failures.looked_at, failures.more) == (5, False)
        groups = {(group.job_type, group.fingerprint): group for group in failures.groups}
        assert {key: group.jobs for key, group in groups.items()} == {
            ("mail", "no route to <n>"): 3,
            ("mail", "other"): 1,
            ("report", "no route to <n>"): 1,
        }
        mail = groups["mail", "no route to <n>"]
        assert mail.example == "no route to 3"
        assert [(n, jobs) for n, jobs in enumerate(mail.trend) if jobs] == [(20, 2), (23, 1)]
        assert mail.last_at - mail.first_at >= 3 * HOUR
        assert failures.groups[0].job_type == "report", "the latest failure comes first"
        page = await observe.page(store, mail.filter)
        assert len(page.jobs) == 3
        assert page.jobs[0].id == mail.newest
        of_one_type = await observe.failures(store, "report")
        assert [group.job_type for group in of_one_type.groups] == ["report"]


async def test_only_the_newest_failures_are_read(db: Database) -> None:
    fail(db, "mail", "old", "new", "new")
    async with open_store(db) as store:
        failures = await observe.failures(store, depth=2)
    assert [(group.fingerprint, group.jobs) for group in failures.groups] == [("new", 2)]
    assert failures.more


async def test_retrying_jobs_are_separate_groups(db: Database) -> None:
    fail(db, "mail", "no route to 1")
    waiting = [db.enqueue("mail") for _ in range(2)]
    for n in (2, 3):
        db.retry(db.claim("mail"), f"no route to {n}", delay=HOUR)
    running = db.enqueue("report")
    db.retry(db.claim("report"), "other")
    db.claim("report")
    db.enqueue("mail")
    async with open_store(db) as store:
        failures = await observe.failures(store)
        assert [(group.job_type, group.jobs, group.retrying) for group in failures.groups] == [
            ("mail", 1, False)
        ]
        retrying = {(group.job_type, group.fingerprint): group for group in failures.retrying}
        assert {key: group.jobs for key, group in retrying.items()} == {
            ("mail", "no route to <n>"): 2,
            ("report", "other"): 1,
        }
        mail = retrying["mail", "no route to <n>"]
        assert mail.retrying
        assert mail.attempts == 1
        assert mail.next_at is not None
        assert mail.next_at > mail.last_at
        assert sum(mail.trend) == 2
        assert retrying["report", "other"].next_at is None, "it runs and is not scheduled"
        assert retrying["report", "other"].newest == running
        page = await observe.page(store, mail.filter)
        assert {job.id for job in page.jobs} == set(waiting)
        of_one_type = await observe.failures(store, "report")
        assert [group.job_type for group in of_one_type.retrying] == ["report"]


@pytest.mark.parametrize(
    "ended_at", ["soon", "9999-99-99", "0001-01-01T00:00:00+14:00", None, 7, {}]
)
async def test_a_malformed_time_in_the_errors_is_ignored(db: Database, ended_at: object) -> None:
    errors = Jsonb([{"ended_at": ended_at}])
    db.execute(
        "insert into howdah.jobs (job_type, attempts, last_error, errors) values ('m', 1, 'x', %s)",
        errors,
    )
    db.execute(
        "insert into howdah.jobs (job_type, attempts, last_error, errors) values ('m', 1, 'x', %s)",
        Jsonb(ended_at),
    )
    async with open_store(db) as store:
        (group,) = (await observe.failures(store)).retrying
    assert (group.jobs, sum(group.trend)) == (2, 0)


def test_completed_jobs_are_not_read(db: Database) -> None:
    fail(db, "mail", "broken")
    db.enqueue_many([{"job_type": "mail"}] * 500)
    db.complete(db.claim("mail", batch=500))
    today = db.value("select 'jobs_finished_' || to_char(howdah.today(), 'YYYYMMDD')")
    with db.transaction():
        read = (
            "select coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) "
            "from pg_stat_xact_user_tables where relname = %s"
        )
        before = db.value(read, today)
        assert len(db.rows("select * from howdah.recent_failures()")) == 1
        assert db.value(read, today) - before < 20
