"""`expires` and `expires_at` from Python and from the command line."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import httpx
import pytest

from howdah import BadInput, JobCancelled, Queue, State, SyncQueue
from howdah.job import NEVER
from howdah.observe import why
from howdah.web import dashboard
from tests.cli.support import Cli
from tests.support.waiting import eventually
from tests.web.serving import open_access

AT = datetime(2100, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def otp(queue: Queue) -> Any:
    @queue.job(expires=timedelta(minutes=10))
    async def otp(n: int) -> None: ...

    return otp


@pytest.fixture
def mail(queue: Queue) -> Any:
    @queue.job
    async def mail(n: int) -> None: ...

    return mail


async def time_left(queue: Queue, id: Any) -> timedelta | None:
    """Return how long a job has from its enqueueing until it expires, in whole seconds."""
    job = await queue.get(id)
    if job.expires_at is None:
        return None
    return timedelta(seconds=round((job.expires_at - job.created_at).total_seconds()))


async def test_a_type_or_one_job_expires(queue: Queue, otp: Any, mail: Any) -> None:
    for job_type, expected in (
        (otp, 10 * MINUTE),
        (otp.options(expires=60), MINUTE),
        (otp.options(expires=MINUTE).options(priority=7), MINUTE),
        (otp.options(delay=MINUTE), 11 * MINUTE),
        (otp.options(expires=timedelta.max), None),
        (mail, None),
        (mail.options(expires=0.5 * 60), MINUTE / 2),
    ):
        assert await time_left(queue, (await job_type.enqueue(n=1)).id) == expected
        (id,) = await job_type.enqueue_many([{"n": 1}], returning="ids")
        assert await time_left(queue, id) == expected
    at = await otp.options(expires_at=AT).enqueue(n=1)
    assert (await at.job()).expires_at == AT
    again = await otp.options(expires_at=AT).options(expires=60).enqueue(n=1)
    assert await time_left(queue, again.id) == MINUTE


async def test_a_job_that_is_enqueued_by_name_expires_as_its_type_does(
    queue: Queue, otp: Any, dsn: str
) -> None:
    await queue.store.fetchval(
        """select howdah.register_job_types('w', '[{"name": "otp", "expires": "20 min"}]')"""
    )
    async with Queue(dsn) as other:
        cases: list[tuple[dict[str, Any], timedelta | None]] = [
            ({}, 20 * MINUTE),
            ({"priority": 7, "max_attempts": 2}, 20 * MINUTE),
            ({"expires": 60}, MINUTE),
            ({"expires": NEVER}, None),
        ]
        for options, expected in cases:
            draft = other.draft("otp", {"n": 1}, **options)
            assert await time_left(queue, (await other.enqueue("otp", **options)).id) == expected
            (id,) = await other.enqueue_many([draft], returning="ids")
            assert await time_left(queue, id) == expected, options
        handle = await other.enqueue("otp", expires_at=AT)
        assert (await handle.job()).expires_at == AT
    # the function that is registered here goes first
    assert await time_left(queue, (await queue.enqueue("otp", {"n": 1})).id) == 10 * MINUTE


async def test_a_stream_mixes_jobs_that_expire_with_others(
    queue: Queue, otp: Any, mail: Any
) -> None:
    drafts = [
        draft
        for n in range(5)
        for draft in (mail.draft(n=n), otp.draft(n=n), queue.draft("by_name", {"n": n}))
    ]
    ids = await queue.enqueue_many(drafts, returning="ids")
    assert ids == [draft.id for draft in drafts]
    times = [await time_left(queue, id) for id in ids]
    assert times == [None, 10 * MINUTE, None] * 5


async def test_in_the_transaction_of_the_caller_it_is_the_same(
    queue: Queue, otp: Any, mail: Any, dsn: str
) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        handles = [
            await job_type.options(conn=connection).enqueue(n=1)
            for job_type in (otp, mail, mail.options(expires=MINUTE), otp.options(expires=NEVER))
        ]
    finally:
        await connection.close()
    times = [await time_left(queue, handle.id) for handle in handles]
    assert times == [10 * MINUTE, None, MINUTE, None]


def test_a_sync_queue_has_it_too(dsn: str) -> None:
    with SyncQueue(dsn) as queue:

        @queue.job(expires=60)
        def otp(n: int) -> None: ...

        job = otp.options(expires_at=AT).enqueue(n=1).job()
        assert job.expires_at == AT
        assert queue.enqueue("other", expires=5).job().expires_at is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"expires": 0}, "expires must be longer than 0"),
        ({"expires": -1}, "expires=-1 is negative"),
        ({"expires": "1h"}, r"expires must be a timedelta or a number of seconds.*hours=1"),
        ({"expires": AT}, "expires is a length of time: give the instant .* as expires_at"),
        ({"expires": 1, "expires_at": AT}, "give expires or expires_at, not both"),
        ({"expires_at": datetime(2100, 1, 1)}, "has no time zone.*expires=timedelta"),
        ({"expires_at": 5}, "expires_at must be a datetime, not 5"),
        ({"expires_at": AT, "run_at": AT}, "is not after run_at=.*could never run"),
    ],
)
async def test_a_wrong_expiry_is_refused(mail: Any, options: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        mail.options(**options)


@pytest.mark.parametrize("wrong", [0, "1h", AT])
def test_a_type_refuses_a_wrong_expiry(queue: Queue, wrong: Any) -> None:
    with pytest.raises(BadInput, match="expires must be"):
        queue.job(expires=wrong)


async def test_a_job_that_nobody_started_in_time_is_cancelled_for_those_who_wait(
    queue: Queue, otp: Any, mail: Any
) -> None:
    queue.job(name="nobody_runs_it")(otp.function)
    handle = await queue.enqueue("nobody_runs_it", {"n": 1}, expires=0.05)
    async with queue.worker(job_types=["mail"]):
        with pytest.raises(JobCancelled, match="expired: it was not started by 2"):
            await handle.result(timeout=20)


async def test_why_says_when_it_expires(queue: Queue) -> None:
    handle = await queue.enqueue("mail", expires=3600)
    answer = await why(queue.store, handle.id)
    assert answer.expires_at == (await handle.job()).expires_at
    assert re.search(
        r"No live worker .* It is cancelled if it has not started by 2.* UTC, in 59m",
        answer.sentence,
    )
    late = await queue.enqueue("mail", expires=0.001)

    async def expired() -> bool:
        return (await why(queue.store, late.id)).reason == "expired"

    await eventually(expired)
    assert (await why(queue.store, late.id)).sentence.startswith("It expired at 2")


async def test_the_dashboard_and_the_api_show_and_take_it(queue: Queue) -> None:
    transport = httpx.ASGITransport(dashboard(queue, access=open_access()))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        page = (await client.get("/jobs")).text
        token = page.split('name="howdah-csrf-token" content="')[1].split('"')[0]
        headers = {"X-Howdah-CSRF-Token": token, "Origin": "http://localhost"}
        sent = {"job_type": "mail", "expires": 3600}
        answer = await client.post("/api/v1/jobs", json=sent, headers=headers)
        assert answer.status_code == 201, answer.text
        id = answer.json()["id"]
        assert await time_left(queue, id) == timedelta(hours=1)
        assert "expires <" in (await client.get(f"/jobs/{id}")).text
        shown = (await client.get(f"/api/v1/jobs/{id}")).json()["job"]["expires_at"]
        assert datetime.fromisoformat(shown) == (await queue.get(id)).expires_at


def test_the_command_line_takes_it(dsn: str) -> None:
    cli = Cli(dsn)
    id = cli.ok("enqueue", "mail", "--expires", "1h").strip()
    assert re.search(r"^ *expires +20.*\(in 59m", cli.ok("show", id), re.MULTILINE)
    assert cli.json("show", id)["expires_at"] is not None
    id = cli.ok("enqueue", "mail", "--expires-at", "2100-01-01T00:00:00Z").strip()
    assert cli.json("show", id)["expires_at"] == "2100-01-01T00:00:00Z"
    refused = cli("enqueue", "mail", "--expires", "1h", "--expires-at", "2100-01-01T00:00:00Z")
    assert refused.exit_code == 2
    assert "give expires or expires_at, not both" in refused.stderr


async def test_a_cancelled_job_is_no_failure(queue: Queue) -> None:
    handle = await queue.enqueue("mail", expires=0.001)

    async def cancelled() -> bool:
        await queue.store.fetch("select howdah.expire()")
        return await handle.status() is State.CANCELLED

    await eventually(cancelled)
