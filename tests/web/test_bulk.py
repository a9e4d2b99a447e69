"""A bulk action changes all matching jobs, and no others."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import httpx
import msgspec
import pytest

from howdah import Fail, Queue, WaitsFor, payload
from howdah.enqueue import draft
from howdah.errors import BadInput
from howdah.events import Progressed
from howdah.job import Job
from howdah.observe import (
    Count,
    Filter,
    failures,
    page,
    workers,
)
from howdah.states import State
from howdah.store.ids import new_id
from howdah.store.steer import pause, reprioritise, resume, run_now
from howdah.web import bulk
from howdah.web.actions import Action
from howdah.web.bulk import job as bulk_job
from howdah.web.context import DashboardContext, Settings
from tests.support.waiting import eventually
from tests.web.serving import bulk_tasks, open_access, served

SECRET = "the same for all processes, 32 characters"
CANCEL = bulk.BulkRequest(action=Action.CANCEL, filter=Filter(job_type=("mail",)), who="ann")


@pytest.fixture
async def context(queue: Queue) -> AsyncGenerator[DashboardContext]:
    context = DashboardContext(queue, Settings())
    yield context
    await bulk.runner_of(context).stop()


async def enqueue_request(queue: Queue, request: bulk.BulkRequest, secret: str) -> UUID:
    """Enqueue a request that is signed with this secret."""
    id = new_id()
    return await enqueue_payload(queue, request.signed(secret, id), id)


async def enqueue_payload(queue: Queue, request: dict[str, Any], id: UUID | None = None) -> UUID:
    """Enqueue the payload of a request as any producer could."""
    drafted = draft(bulk.BULK, payload.encode(request, "the request"), id=id)
    await queue.enqueue_many([drafted])
    return drafted.id


async def make_jobs(queue: Queue, jobs: int, job_type: str = "mail") -> list[UUID]:
    drafts = [queue.draft(job_type, {"n": n}) for n in range(jobs)]
    await queue.enqueue_many(drafts)
    return [draft.id for draft in drafts]


async def counts(queue: Queue, job_type: str = "mail") -> dict[State, int]:
    return (await queue.counts()).get(job_type, {})


async def wait_for_end(queue: Queue, id: UUID) -> Job:
    async for _ in queue.handle(id).events():
        pass
    return await queue.get(id)


async def make_failed_jobs(queue: Queue, jobs: int, job_type: str = "mail") -> list[UUID]:
    ids = await make_jobs(queue, jobs, job_type)
    while claimed := await queue.claim([job_type], 1000, worker_id="w"):
        await queue.fail_many(claimed, ["no route to host"] * len(claimed), retry=False)
    return ids


async def test_a_bulk_job_changes_100_000_jobs_and_reports_progress(
    context: DashboardContext, queue: Queue
) -> None:
    await make_jobs(queue, 100_000)
    await make_jobs(queue, 10, "other")
    id = await bulk.start(context, "ann", Action.CANCEL, Filter(job_type=("mail",)))
    reports = [
        (event.percent, event.stage)
        async for event in queue.handle(id).events()
        if isinstance(event, Progressed)
    ]
    job = await queue.get(id)
    assert job.result == {"matched": 100_000, "moved": 100_000}
    assert await counts(queue) == {State.CANCELLED: 100_000}
    assert await counts(queue, "other") == {State.PENDING: 10}
    percents = [percent for percent, _ in reports]
    assert percents == sorted(percents)
    assert len({percent for percent in percents if 0 < percent < 100}) >= 3
    stages = [stage for _, stage in reports if stage and " of about 100,000" in stage]
    assert len(stages) >= 3


async def test_it_changes_the_jobs_of_a_key_and_of_a_limit(
    context: DashboardContext, queue: Queue
) -> None:
    await queue.store.fetchval("select howdah.set_limit('api', 1)")
    await queue.store.fetchval("select howdah.set_type_limit('call', null, p_limit => 'api')")
    await queue.enqueue_many(queue.draft("mail", key=key) for key in "aaabb")
    await queue.enqueue_many(queue.draft("call") for _ in range(3))
    await queue.store.fetch("select * from howdah.admit()")
    for wanted, moved in (
        (Filter(job_type=("mail",), key="a", waits_for=(WaitsFor.KEY,)), 2),
        (Filter(limited_by="api", waits_for=(WaitsFor.LIMIT,)), 2),
    ):
        id = await bulk.start(context, "ann", Action.CANCEL, wanted)
        job = await wait_for_end(queue, id)
        assert job.result == {"matched": moved, "moved": moved}
    assert await counts(queue) == {State.PENDING: 3, State.CANCELLED: 2}
    assert await counts(queue, "call") == {State.PENDING: 1, State.CANCELLED: 2}


async def test_it_changes_only_older_jobs_and_no_bulk_job(
    context: DashboardContext, queue: Queue
) -> None:
    await make_jobs(queue, 3)
    other = await queue.enqueue(bulk.BULK, {}, delay=timedelta(hours=1))
    request = bulk.BulkRequest(action=Action.CANCEL, filter=Filter(), who="ann")
    id = await enqueue_request(queue, request, context.secret)
    late = await queue.enqueue("mail")
    bulk.runner_of(context).start()
    job = await wait_for_end(queue, id)
    assert job.status is State.COMPLETED
    assert job.result == {"matched": 3, "moved": 3}
    assert await late.status() is State.PENDING
    assert await other.status() is State.PENDING


async def test_a_job_that_matches_again_is_not_moved_again(
    context: DashboardContext, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_job, "PAGE", 10)
    ids = await make_failed_jobs(queue, 200)

    @queue.job(name="mail")
    async def mail(n: int) -> None:
        raise Fail("again")

    async with queue.worker() as worker:
        id = await bulk.start(context, "ann", Action.REQUEUE, Filter(status=(State.FAILED,)))
        job = await wait_for_end(queue, id)
        await worker.run_until_idle()
    assert job.result == {"matched": 200, "moved": 200}
    assert {(await queue.get(id)).attempts for id in ids} == {2}


@pytest.mark.parametrize(
    ("action", "priority", "expected"),
    [
        (Action.CANCEL, None, {State.CANCELLED: 5, State.FAILED: 2}),
        (Action.REPRIORITISE, 7, {State.PENDING: 5, State.FAILED: 2}),
        (Action.REQUEUE, None, {State.PENDING: 7}),
        (Action.DELETE, None, {State.PENDING: 5}),
    ],
)
async def test_each_action_changes_only_jobs_whose_state_allows_it(
    context: DashboardContext,
    queue: Queue,
    action: Action,
    priority: int | None,
    expected: dict[State, int],
) -> None:
    await make_failed_jobs(queue, 2)
    await make_jobs(queue, 5)
    counted = await bulk.count(context, action, Filter(job_type=("mail",)))
    id = await bulk.start(context, "ann", action, Filter(job_type=("mail",)), priority)
    result = (await wait_for_end(queue, id)).result
    assert await counts(queue) == expected
    assert counted is not None
    assert (counted.jobs, counted.jobs) == (result["matched"], result["moved"])
    if priority is not None:
        again = (await page(queue.store, Filter(priority=priority))).jobs
        assert len(again) == 5


async def test_waiting_jobs_join_the_line_together(context: DashboardContext, queue: Queue) -> None:
    later = [queue.draft("mail", delay=timedelta(hours=1)) for _ in range(5)]
    await queue.enqueue_many(later)
    id = await bulk.start(context, "ann", Action.RUN_NOW, Filter(job_type=("mail",)))
    assert (await wait_for_end(queue, id)).result == {"matched": 5, "moved": 5}
    assert len(await queue.claim(["mail"], 10, worker_id="w")) == 5


async def test_it_continues_at_its_checkpoint_after_a_stop_of_its_dashboard(
    context: DashboardContext, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_job, "PAGE", 10)
    monkeypatch.setattr(bulk_job, "CHECKPOINT_EVERY", 0.0)
    ids = await make_jobs(queue, 5_000)
    id = await bulk.start(context, "ann", Action.REPRIORITISE, Filter(job_type=("mail",)), 7)
    await eventually(lambda: _has_come_far(queue, id))
    await bulk.runner_of(context).stop()
    assert (await queue.get(id)).status is State.PENDING
    await reprioritise(queue.store, ids[-50:], 3)  # the newest, which are done already
    bulk.runner_of(context).start()
    job = await wait_for_end(queue, id)
    assert 5_000 <= job.result["matched"] < 5_500
    assert await bulk.count(context, Action.CANCEL, Filter(priority=7)) == Count(4_950)
    assert await bulk.count(context, Action.CANCEL, Filter(priority=3)) == Count(50)


async def _has_come_far(queue: Queue, id: UUID) -> bool:
    return (await queue.get(id)).progress >= 20


async def test_it_can_be_cancelled(
    context: DashboardContext, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_job, "PAGE", 1)
    await make_jobs(queue, 10_000)
    id = await bulk.start(context, "ann", Action.CANCEL, Filter(job_type=("mail",)))
    await eventually(lambda: _has_begun(queue, id))
    await queue.cancel([id])
    await eventually(lambda: _is_empty(queue))
    assert (await counts(queue))[State.PENDING] > 0


async def _has_begun(queue: Queue, id: UUID) -> bool:
    return (await queue.get(id)).current_stage is not None


async def _is_empty(queue: Queue) -> bool:
    return await workers(queue.store) == []


async def test_beyond_the_count_limit_progress_shows_a_lower_bound(
    context: DashboardContext, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_job, "PAGE", 10)
    monkeypatch.setattr(bulk_job, "EXACTLY", 100)
    for _ in range(20):
        await make_jobs(queue, 100)
    id = await bulk.start(context, "ann", Action.CANCEL, Filter(job_type=("mail",)))
    reports = [e async for e in queue.handle(id).events() if isinstance(e, Progressed)]
    percents = [event.percent for event in reports]
    assert percents == sorted(percents)
    assert any(0 < percent < 99 for percent in percents)
    assert any(event.stage and event.stage.endswith(" of 100+") for event in reports)


async def test_an_unfinished_bulk_job_is_run_by_the_next_dashboard(queue: Queue) -> None:
    await make_jobs(queue, 3)
    id = await enqueue_request(queue, CANCEL, SECRET)
    async with served(queue, access=open_access(), secret=SECRET) as running:
        async with httpx.AsyncClient(base_url=running.url) as client:
            assert (await client.get("/")).status_code == 200
        assert await queue.handle(id).result(timeout=30) == {"matched": 3, "moved": 3}


async def refusal_of(queue: Queue, context: DashboardContext, id: UUID) -> str:
    """Let the dashboard run the request; returns the error of its refusal."""
    bulk.runner_of(context).start()
    job = await wait_for_end(queue, id)
    assert (job.status, job.attempts) == (State.FAILED, 1)
    return job.last_error or ""


async def test_a_request_without_a_valid_signature_changes_no_job(
    context: DashboardContext, queue: Queue
) -> None:
    """A producer must not gain the rights of a dashboard by a bulk job."""
    (mail,) = await make_jobs(queue, 1)
    unsigned = CANCEL.payload()
    signed = CANCEL.signed(context.secret, new_id())
    other = bulk.BulkRequest(action=Action.CANCEL, filter=Filter(), who="ann")
    for forged in (unsigned, {**unsigned, "signature": "0" * 64}, {**unsigned, "signature": "é"}):
        id = await enqueue_payload(queue, forged)
        assert "was not signed by this dashboard" in await refusal_of(queue, context, id)
    id = await enqueue_payload(queue, signed)  # signed for the id of another job
    assert "copied from another job" in await refusal_of(queue, context, id)
    for changed in (
        {"action": "requeue"},
        {"filter": other.payload()["filter"]},
        {"who": "eve"},
        {"action": "reprioritise", "priority": 3},
    ):
        id = new_id()
        id = await enqueue_payload(queue, {**CANCEL.signed(context.secret, id), **changed}, id)
        assert "HOWDAH_WEB_SECRET" in await refusal_of(queue, context, id)
    assert (await queue.get(mail)).status is State.PENDING


async def test_a_request_signed_with_another_secret_changes_no_job(
    context: DashboardContext, queue: Queue
) -> None:
    (mail,) = await make_jobs(queue, 1)
    id = await enqueue_request(queue, CANCEL, SECRET)
    assert "was not signed by this dashboard" in await refusal_of(queue, context, id)
    assert (await queue.get(mail)).status is State.PENDING


@pytest.mark.parametrize(
    "filter",
    [
        Filter(fingerprint=""),
        Filter(error="", worker_id=""),
        Filter(priority=0, attempts_from=0, attempts_to=0),
        Filter(),
        Filter(
            status=(State.FAILED,),
            job_type=("é",),
            created_to=datetime(2026, 1, 2, 3, 4, 5, 6, timezone(timedelta(hours=2))),
            payload=(("a", "b"),),
        ),
    ],
)
async def test_a_request_is_stored_exactly(
    context: DashboardContext, queue: Queue, filter: Filter
) -> None:
    request = bulk.BulkRequest(action=Action.REQUEUE, filter=filter, who="ann")
    id = await enqueue_request(queue, request, context.secret)
    stored = (await queue.get(id)).data
    decoded = msgspec.convert(stored, bulk.BulkRequest)
    assert decoded == request
    decoded.check(context.secret, id, stored["signature"])


async def test_a_group_without_an_error_is_retried_alone(
    context: DashboardContext, queue: Queue
) -> None:
    silent, loud = await make_failed_jobs(queue, 2)
    await queue.store.fetch("update howdah.jobs set last_error = null where id = $1", silent)
    groups = (await failures(queue.store)).groups
    (group,) = [group for group in groups if group.fingerprint == ""]
    id = await bulk.start(context, "ann", Action.REQUEUE, group.filter)
    assert (await wait_for_end(queue, id)).result == {"matched": 1, "moved": 1}
    assert (await queue.get(silent)).status is State.PENDING
    assert (await queue.get(loud)).status is State.FAILED


async def test_the_runner_stops_after_the_last_job_and_leaves_no_type_registered(
    context: DashboardContext, queue: Queue
) -> None:
    await make_jobs(queue, 3)
    id = await bulk.start(context, "ann", Action.CANCEL, Filter(job_type=("mail",)))
    await wait_for_end(queue, id)
    await eventually(lambda: _is_empty(queue))
    assert dict(queue.handlers) == {}


async def test_the_runner_does_not_wait_for_a_job_scheduled_far_ahead(
    context: DashboardContext, queue: Queue
) -> None:
    """A producer may schedule a job for any time; no worker waits for it."""
    await queue.enqueue(bulk.BULK, {}, run_at=datetime(2090, 1, 1, tzinfo=UTC))
    bulk.runner_of(context).start()
    await eventually(lambda: bulk_tasks() == [])
    assert await workers(queue.store) == []
    await make_jobs(queue, 3)  # and it does not delay jobs that are due
    id = await bulk.start(context, "ann", Action.CANCEL, Filter(job_type=("mail",)))
    assert (await wait_for_end(queue, id)).result == {"matched": 3, "moved": 3}
    await eventually(lambda: bulk_tasks() == [])
    assert await workers(queue.store) == []


async def test_the_runner_does_not_wait_for_paused_bulk_jobs(
    context: DashboardContext, queue: Queue
) -> None:
    await pause(queue.store, bulk.BULK)
    id = await bulk.start(context, "ann", Action.CANCEL, Filter(job_type=("mail",)))
    await eventually(lambda: bulk_tasks() == [])
    assert await workers(queue.store) == []
    await resume(queue.store, bulk.BULK)
    bulk.runner_of(context).start()
    assert (await wait_for_end(queue, id)).result == {"matched": 0, "moved": 0}


async def test_the_runner_waits_for_a_retry_that_is_due_soon_only(
    context: DashboardContext, queue: Queue
) -> None:
    await make_jobs(queue, 1)
    id = await enqueue_request(queue, CANCEL, context.secret)
    for seconds, stays in ((3600, False), (1, True)):
        (claim,) = await queue.claim([bulk.BULK], 1, worker_id="w")
        await queue.fail_many([claim], ["lost"], retry=True)
        await queue.store.fetch(
            "update howdah.jobs set run_at = howdah.clock() + make_interval(secs => $2) "
            "where id = $1",
            id,
            float(seconds),
        )
        bulk.runner_of(context).start()
        if stays:
            assert (await wait_for_end(queue, id)).result == {"matched": 1, "moved": 1}
        else:
            await eventually(lambda: bulk_tasks() == [])
            await run_now(queue.store, [id])


async def test_a_cancelled_job_names_the_user_who_cancelled_it(
    context: DashboardContext, queue: Queue
) -> None:
    (id,) = await make_jobs(queue, 1)
    await wait_for_end(
        queue, await bulk.start(context, "ann", Action.CANCEL, Filter(job_type=("mail",)))
    )
    assert (await queue.get(id)).last_error == "cancelled by ann"


async def test_a_bulk_request_is_logged(
    context: DashboardContext, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "howdah.web")
    id = await bulk.start(
        context, "ann", Action.REPRIORITISE, Filter(job_type=("mail",), attempts_from=0), 7
    )
    (line,) = [
        record.getMessage() for record in caplog.records if "web.action" in record.getMessage()
    ]
    assert f'who="ann" did=bulk on="{id}" action="reprioritise"' in line
    assert "mail" in line
    assert 'priority="7"' in line
    assert "attempts_from" in line


@pytest.mark.parametrize(
    ("action", "priority"),
    [(Action.CLONE, None), (Action.REPRIORITISE, None), (Action.CANCEL, 3)],
)
async def test_an_invalid_request_is_refused_before_a_job_is_enqueued(
    context: DashboardContext, queue: Queue, action: Action, priority: int | None
) -> None:
    with pytest.raises(BadInput):
        await bulk.start(context, "ann", action, Filter(), priority)
    assert await queue.counts() == {}
