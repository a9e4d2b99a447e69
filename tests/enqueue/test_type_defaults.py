"""A job without priority or max_attempts gets those that a worker registered for its type."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from howdah import Queue
from howdah.job import Draft
from tests.support import Database

PriorityAndAttempts = tuple[int, int]


@pytest.fixture
def pay(db: Database) -> Database:
    """A database where a worker has registered the type `pay`."""
    db.execute(
        "select howdah.register_job_types('w', "
        """'[{"name": "pay", "priority": 30, "max_attempts": 1}, {"name": "plain"}]')"""
    )
    return db


def defaults(db: Database, id: UUID | None = None) -> PriorityAndAttempts:
    where = "true" if id is None else f"id = '{id}'"
    (row,) = db.rows(f"select priority, max_attempts from howdah.jobs where {where}")
    return row["priority"], row["max_attempts"]


# ── in SQL ──


@pytest.mark.engine
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("p_job_type => 'pay'", (30, 1)),
        ("p_job_type => 'pay', p_priority => 100", (100, 1)),
        ("p_job_type => 'pay', p_max_attempts => 3", (30, 3)),
        ("p_job_type => 'pay', p_priority => null, p_max_attempts => null", (30, 1)),
        ("p_job_type => 'plain'", (100, 3)),
        ("p_job_type => 'unregistered'", (100, 3)),
        ("p_job_type => 'unregistered', p_priority => 7", (7, 3)),
    ],
)
def test_enqueue_takes_omitted_values_from_the_type(
    pay: Database, arguments: str, expected: PriorityAndAttempts
) -> None:
    assert defaults(pay, pay.value(f"select howdah.enqueue({arguments})")) == expected


@pytest.mark.engine
@pytest.mark.parametrize("delay", ["null", "interval '1 hour'"])
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [("null, {}, null", (30, 1)), ("100, {}, 3", (100, 3)), ("5, {}, null", (5, 1))],
)
def test_enqueue_now_takes_omitted_values_from_the_type(
    pay: Database, arguments: str, expected: PriorityAndAttempts, delay: str
) -> None:
    priority, _, max_attempts = arguments.partition(", {}, ")
    pay.execute(
        f"call howdah.enqueue_now('pay', '{{}}', {priority}, null, {max_attempts}, "
        f"howdah.new_id(), {delay})"
    )
    assert defaults(pay) == expected


@pytest.mark.engine
def test_enqueue_many_takes_omitted_values_from_the_type_of_each_job(pay: Database) -> None:
    ids = pay.enqueue_many(
        [
            {"job_type": "pay"},
            {"job_type": "pay", "priority": 100, "max_attempts": 3},
            {"job_type": "pay", "priority": None},
            {"job_type": "plain"},
            {"job_type": "unregistered", "max_attempts": 2},
        ]
    )
    assert [defaults(pay, id) for id in ids] == [(30, 1), (100, 3), (30, 1), (100, 3), (100, 2)]


@pytest.mark.engine
def test_a_plain_insert_takes_omitted_values_from_the_type(pay: Database) -> None:
    for columns, values, expected in (
        ("job_type", "'pay'", (30, 1)),
        ("job_type, priority", "'pay', 150", (150, 1)),
        ("job_type, max_attempts", "'pay', 2", (30, 2)),
        ("job_type, priority, max_attempts", "'pay', 99, 4", (99, 4)),
        ("job_type", "'plain'", (100, 3)),
        ("job_type", "'unregistered'", (100, 3)),
    ):
        (id,) = pay.column(f"insert into jobs ({columns}) values ({values}) returning id")
        assert defaults(pay, id) == expected, (columns, values)


@pytest.mark.engine
def test_a_plain_insert_is_claimed_by_the_priority_of_its_type(pay: Database) -> None:
    pay.plain("INSERT INTO jobs (job_type) VALUES ('pay'), ('plain'), ('pay')")
    assert [c.job_type for c in pay.claim("pay", "plain")] == ["plain", "pay", "pay"]


@pytest.mark.engine
def test_a_clone_keeps_the_values_of_the_original(pay: Database) -> None:
    id = pay.value("select howdah.enqueue('pay', p_priority => 100, p_max_attempts => 3)")
    clone = pay.value("select clone_id from howdah.clone(array[%s]::uuid[])", id)
    assert defaults(pay, clone) == (100, 3)


# ── in Python, in a process without the function ──


@pytest.fixture
async def producer(queue: Queue) -> Queue:
    """A queue without functions, on a database where workers have registered some."""
    await queue.store.fetch(
        "select howdah.register_job_types('w', "
        """'[{"name": "pay", "priority": 30, "max_attempts": 1}]')"""
    )
    return queue


async def stored_values(queue: Queue, id: UUID) -> PriorityAndAttempts:
    job = await queue.get(id)
    return job.priority, job.max_attempts


async def test_enqueue_by_name_takes_omitted_values_from_the_type(producer: Queue) -> None:
    cases: list[tuple[dict[str, Any], PriorityAndAttempts]] = [
        ({}, (30, 1)),
        ({"priority": 100}, (100, 1)),
        ({"max_attempts": 3}, (30, 3)),
        ({"delay": 60}, (30, 1)),
    ]
    for options, expected in cases:
        handle = await producer.enqueue("pay", **options)
        assert await stored_values(producer, handle.id) == expected


async def test_enqueue_in_a_transaction_takes_omitted_values_from_the_type(
    producer: Queue, dsn: str
) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        handle = await producer.enqueue("pay", conn=connection)
    finally:
        await connection.close()
    assert await stored_values(producer, handle.id) == (30, 1)


@pytest.mark.parametrize("is_async", [False, True])
async def test_each_draft_of_a_mixed_stream_takes_omitted_values_from_the_type(
    producer: Queue, is_async: bool
) -> None:
    drafts: list[Draft] = []
    all_expected: list[PriorityAndAttempts] = []
    for _ in range(3):
        for draft, expected in (
            (producer.draft("a", priority=5, max_attempts=5), (5, 5)),
            (producer.draft("pay"), (30, 1)),
            (producer.draft("pay", priority=100), (100, 1)),
            (producer.draft("other"), (100, 3)),
            (producer.draft("pay", delay=60), (30, 1)),
            (producer.draft("pay", max_attempts=3), (30, 3)),
        ):
            drafts.append(draft)
            all_expected.append(expected)

    async def stream() -> AsyncGenerator[Draft]:
        for draft in drafts:
            yield draft

    assert await producer.enqueue_many(stream() if is_async else drafts) == 18
    assert [await stored_values(producer, draft.id) for draft in drafts] == all_expected


async def test_options_of_a_local_function_win_over_the_registered_type(producer: Queue) -> None:
    @producer.job(name="pay", max_attempts=7)
    async def pay() -> None: ...

    assert await stored_values(producer, (await pay.enqueue()).id) == (100, 7)
    assert await stored_values(producer, (await producer.enqueue("pay")).id) == (100, 7)


async def test_an_unregistered_type_is_enqueued_with_one_warning(
    producer: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "howdah.enqueue"):
        for _ in range(3):
            await producer.enqueue("pey")
            await producer.enqueue("pay")
    messages = [r.getMessage() for r in caplog.records if "enqueue.unregistered" in r.getMessage()]
    assert messages == [
        "enqueue.unregistered type=pey: no worker has ever registered 'pey' (did you mean 'pay'?)"
    ]


async def test_a_used_id_is_still_refused(producer: Queue) -> None:
    draft = Draft(id=uuid4(), job_type="pay", data="{}")
    await producer.enqueue_many([draft])
    with pytest.raises(Exception, match="id"):
        await producer.enqueue_many([draft])
