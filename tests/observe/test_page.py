"""Jobs by filter: each filter finds its jobs, pages have no gap or repeat, and the depth holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from howdah import BadInput, Queue, State, observe
from howdah.observe import Count, Filter
from howdah.observe.filter_sql import first_id
from tests.observe.support import HOUR, open_store
from tests.support import Database


async def find_jobs(db: Database, job_filter: Filter, **options: Any) -> list[UUID]:
    async with open_store(db) as store:
        return [job.id for job in (await observe.page(store, job_filter, **options)).jobs]


async def test_every_filter_finds_its_jobs_and_no_other(db: Database) -> None:
    plain = db.enqueue("mail", {"to": "kim", "n": 5})
    urgent = db.enqueue("resize", {"to": "lee", "n": "5", "deep": {"a": 1}}, priority=150)
    failed = db.enqueue("fax", max_attempts=1)
    db.fail(db.claim("fax", worker="bob"), "ValueError: Timeout after 17 s")
    cancelled = db.enqueue("sms")
    db.cancel(cancelled)
    completed = db.enqueue("report")
    db.complete(db.claim("report", worker="eve"))
    everything = [completed, cancelled, failed, urgent, plain]
    db.execute(
        """select howdah.register_job_types('me', '[{"name": "resize", "queue": "media"},
            {"name": "report", "queue": "media"}, {"name": "fax"}]')"""
    )
    error = db.value("select howdah.fingerprint('ValueError: Timeout after 99 s')")
    for job_filter, expected in {
        Filter(): everything,
        Filter(status=(State.PENDING,)): [urgent, plain],
        Filter(status=(State.FAILED, State.CANCELLED)): [cancelled, failed],
        Filter(status=(State.COMPLETED,)): [completed],
        Filter(status=(State.COMPLETED, State.PENDING)): [completed, urgent, plain],
        Filter(job_type=("mail", "sms")): [cancelled, plain],
        Filter(priority=150): [urgent],
        Filter(worker_id="bob"): [failed],
        Filter(worker_id="eve"): [completed],
        Filter(attempts_from=1): [completed, failed],
        Filter(attempts_to=0): [cancelled, urgent, plain],
        Filter(error="timeout AFTER"): [failed],
        Filter(error="100%"): [],
        Filter(fingerprint=error): [failed],
        Filter(payload=(("to", "kim"),)): [plain],
        Filter(payload=(("n", "5"),)): [urgent, plain],
        Filter(payload=(("n", '"5"'),)): [urgent],
        Filter(payload=(("to", "lee"), ("n", "5"))): [urgent],
        Filter(payload=(("deep", '{"a": 1}'),)): [urgent],
        Filter(job_type=("mail",), priority=150): [],
        Filter(queue=("media",)): [completed, urgent],
        Filter(queue=("media", "default")): everything,
        Filter(queue=("default",), status=(State.PENDING,)): [plain],
    }.items():
        assert await find_jobs(db, job_filter) == expected, job_filter


async def test_time_filters_use_the_time_of_creation(db: Database) -> None:
    job = db.enqueue("mail")
    created_at: datetime = db.job(job)["created_at"]
    second = timedelta(seconds=1)
    for job_filter, expected in {
        Filter(created_from=created_at): [job],
        Filter(created_to=created_at + second): [job],
        Filter(created_from=created_at - HOUR, created_to=created_at + HOUR): [job],
        Filter(created_from=created_at + second): [],
        Filter(created_to=created_at): [],
    }.items():
        assert await find_jobs(db, job_filter) == expected, job_filter


@pytest.mark.parametrize(
    "wrong",
    [
        {"created_from": datetime(2030, 1, 1)},
        {"error": "a\0b"},
        {"job_type": ("a\0b",)},
    ],
)
def test_a_bad_filter_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        Filter(**wrong)


async def test_a_limit_out_of_range_is_refused(queue: Queue) -> None:
    for limit in (0, 1001):
        with pytest.raises(BadInput, match="between 1 and 1000"):
            await observe.page(queue.store, limit=limit)


@pytest.mark.parametrize("depth", [1, 3, 7, 1000])
@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_pages_follow_each_other_without_gap_or_repeat(
    db: Database, limit: int, depth: int
) -> None:
    db.enqueue_many([{"job_type": "mail" if n % 3 else "rare"} for n in range(20)])
    db.complete(db.claim("mail", batch=6))
    job_filter = Filter(job_type=("rare",))
    expected = await find_jobs(db, job_filter, limit=100)
    assert len(expected) == 7
    seen: list[UUID] = []
    before: UUID | None = None
    async with open_store(db) as store:
        for _ in range(40):
            page = await observe.page(store, job_filter, before=before, limit=limit, depth=depth)
            seen += [job.id for job in page.jobs]
            assert len(page.jobs) <= limit
            before = page.before
            if before is None:
                break
            assert page.exhausted or len(page.jobs) == limit
    assert before is None
    assert seen == expected


async def test_a_page_reads_no_deeper_than_its_depth(db: Database) -> None:
    rare = db.enqueue("rare")
    db.enqueue_many([{"job_type": "mail"}] * 50)
    async with open_store(db) as store:
        job_filter = Filter(job_type=("rare",))
        page = await observe.page(store, job_filter, depth=20)
        assert (page.jobs, page.exhausted) == ([], True)
        next_page = await observe.page(store, job_filter, before=page.before, depth=100)
        assert ([job.id for job in next_page.jobs], next_page.before) == ([rare], None)
        assert await observe.count(store, job_filter, depth=20) == Count(0, more=True)
        assert await observe.count(store, job_filter, depth=100) == Count(1)


async def test_counts_are_exact_up_to_the_cap_and_for_ended_jobs_also_beyond(db: Database) -> None:
    db.enqueue_many([{"job_type": "mail"}] * 12)
    db.complete(db.claim("mail", batch=5))
    db.fail(db.claim("mail", batch=2))
    async with open_store(db) as store:

        async def count(job_filter: Filter) -> Count:
            return await observe.count(store, job_filter, cap=4)

        assert await count(Filter(status=(State.COMPLETED,))) == Count(5)
        assert await count(Filter(status=(State.FAILED,), job_type=("mail",))) == Count(2)
        assert await count(Filter(status=(State.FAILED,), job_type=("other",))) == Count(0)
        assert await count(Filter(status=(State.PENDING,))) == Count(4, more=True)
        assert await count(Filter()) == Count(5 + 2 + 4, more=True)
        assert await count(Filter(status=(State.FAILED,), error="broke")) == Count(2)
        assert await count(Filter(job_type=("mail",), priority=100)) == Count(4, more=True)


async def test_counting_ended_jobs_does_not_read_them(db: Database) -> None:
    db.enqueue("mail")
    db.complete(db.claim("mail"))
    async with open_store(db) as store:
        with db.transaction():
            db.execute("lock table howdah.jobs_finished in access exclusive mode")
            job_filter = Filter(status=(State.COMPLETED,))
            within = timedelta(milliseconds=300)
            assert await observe.count(store, job_filter, within=within) == Count(1)
            with pytest.raises(observe.TookTooLong):
                await observe.page(store, job_filter, within=within)


text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


@settings(max_examples=60, deadline=None)
@given(key=text, value=text, error=text)
def test_any_text_is_searched_literally(
    shared_db: Database, key: str, value: str, error: str
) -> None:
    """No text is interpreted as SQL, JSON or a pattern."""
    import asyncio

    job = shared_db.enqueue("typed", {key: value}, max_attempts=1)
    (claim,) = shared_db.claim("typed")
    shared_db.fail([claim], f"before {error} after")

    async def search() -> tuple[list[UUID], list[UUID]]:
        async with Queue(shared_db.dsn) as queue:
            by_payload = await observe.page(queue.store, Filter(payload=((key, value),)), limit=5)
            by_error = await observe.page(queue.store, Filter(error=error), limit=5)
        return [job.id for job in by_payload.jobs], [job.id for job in by_error.jobs]

    by_payload, by_error = asyncio.run(search())
    assert by_payload[0] == job
    assert by_error[0] == job


def test_the_first_id_of_an_instant_contains_its_time() -> None:
    at = datetime(2030, 1, 1, tzinfo=UTC)
    assert first_id(at).int >> 80 == int(at.timestamp() * 1000)
    assert first_id(datetime(1960, 1, 1, tzinfo=UTC)).int == 0
