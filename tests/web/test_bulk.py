"""A bulk action does to all jobs that match what a person could do to each, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import httpx
import msgspec
import pytest

from howdah import Fail, Queue, payload
from howdah.enqueue import draft
from howdah.errors import BadInput
from howdah.events import Progressed
from howdah.ids import new_id
from howdah.job import Job
from howdah.observe import (
    Count,
    Filter,
    crew,
    failures,
    page,
    pause,
    reprioritise,
    resume,
    run_now,
)
from howdah.states import State
from howdah.web import bulk
from howdah.web.actions import Action
from howdah.web.bulk import counted as counting
from howdah.web.bulk import walk
from howdah.web.desk import Desk, Settings
from tests.support.waiting import eventually
from tests.web.serving import anybody, hands, served

SECRET = "the same for all processes, 32 characters"
CANCEL = bulk.Order(action=Action.CANCEL, filter=Filter(job_type=("mail",)), who="ann")


@pytest.fixture
async def desk(queue: Queue) -> AsyncGenerator[Desk]:
    desk = Desk(queue, Settings())
    yield desk
    await bulk.hands_of(desk).stop()


async def ordered(queue: Queue, order: bulk.Order, secret: str) -> UUID:
    """Leave an order behind that a dashboard with this secret gave."""
    id = new_id()
    return await by_sql(queue, order.signed(secret, id), id)


async def by_sql(queue: Queue, order: dict[str, Any], id: UUID | None = None) -> UUID:
    """Enqueue an order as any producer could."""
    drafted = draft(bulk.BULK, payload.encode(order, "the order"), id=id)
    await queue.enqueue_many([drafted])
    return drafted.id


async def made(queue: Queue, jobs: int, job_type: str = "mail") -> list[UUID]:
    drafts = [queue.draft(job_type, {"n": n}) for n in range(jobs)]
    await queue.enqueue_many(drafts)
    return [draft.id for draft in drafts]


async def counts(queue: Queue, job_type: str = "mail") -> dict[State, int]:
    return (await queue.counts()).get(job_type, {})


async def ended(queue: Queue, id: UUID) -> Job:
    async for _ in queue.handle(id).events():
        pass
    return await queue.get(id)


async def failed(queue: Queue, jobs: int, job_type: str = "mail") -> list[UUID]:
    ids = await made(queue, jobs, job_type)
    while claimed := await queue.claim([job_type], 1000, worker_id="w"):
        await queue.fail_many(claimed, ["no route to host"] * len(claimed), retry=False)
    return ids


async def test_a_hundred_thousand_matching_jobs_are_moved_while_its_progress_is_seen(
    desk: Desk, queue: Queue
) -> None:
    await made(queue, 100_000)
    await made(queue, 10, "other")
    id = await bulk.start(desk, "ann", Action.CANCEL, Filter(job_type=("mail",)))
    seen = [
        (event.percent, event.stage)
        async for event in queue.handle(id).events()
        if isinstance(event, Progressed)
    ]
    job = await queue.get(id)
    assert job.result == {"matched": 100_000, "moved": 100_000}
    assert await counts(queue) == {State.CANCELLED: 100_000}
    assert await counts(queue, "other") == {State.PENDING: 10}
    percents = [percent for percent, _ in seen]
    assert percents == sorted(percents)
    assert len({percent for percent in percents if 0 < percent < 100}) >= 3
    stages = [stage for _, stage in seen if stage and " of about 100,000" in stage]
    assert len(stages) >= 3


async def test_it_moves_what_was_there_before_it_and_no_bulk_job(desk: Desk, queue: Queue) -> None:
    await made(queue, 3)
    other = await queue.enqueue(bulk.BULK, {}, delay=timedelta(hours=1))
    order = bulk.Order(action=Action.CANCEL, filter=Filter(), who="ann")
    id = await ordered(queue, order, desk.secret)
    late = await queue.enqueue("mail")
    bulk.hands_of(desk).needed()
    job = await ended(queue, id)
    assert job.status is State.COMPLETED
    assert job.result == {"matched": 3, "moved": 3}
    assert await late.status() is State.PENDING
    assert await other.status() is State.PENDING


async def test_a_job_that_matches_again_is_not_moved_again(
    desk: Desk, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "PAGE", 10)
    ids = await failed(queue, 200)

    @queue.job(name="mail")
    async def mail(n: int) -> None:
        raise Fail("again")

    async with queue.worker() as worker:
        id = await bulk.start(desk, "ann", Action.REQUEUE, Filter(status=(State.FAILED,)))
        job = await ended(queue, id)
        await worker.run_until_idle()
    assert job.result == {"matched": 200, "moved": 200}
    assert {(await queue.get(id)).attempts for id in ids} == {2}


@pytest.mark.parametrize(
    ("action", "priority", "left"),
    [
        (Action.CANCEL, None, {State.CANCELLED: 5, State.FAILED: 2}),
        (Action.REPRIORITISE, 7, {State.PENDING: 5, State.FAILED: 2}),
        (Action.REQUEUE, None, {State.PENDING: 7}),
        (Action.DELETE, None, {State.PENDING: 5}),
    ],
)
async def test_each_action_moves_only_what_is_in_a_state_for_it(
    desk: Desk, queue: Queue, action: Action, priority: int | None, left: dict[State, int]
) -> None:
    await failed(queue, 2)
    await made(queue, 5)
    asked = await bulk.count(desk, action, Filter(job_type=("mail",)))
    id = await bulk.start(desk, "ann", action, Filter(job_type=("mail",)), priority)
    result = (await ended(queue, id)).result
    assert await counts(queue) == left
    assert asked is not None
    assert (asked.jobs, asked.jobs) == (result["matched"], result["moved"])
    if priority is not None:
        again = (await page(queue.store, Filter(priority=priority))).jobs
        assert len(again) == 5


async def test_waiting_jobs_join_the_line_together(desk: Desk, queue: Queue) -> None:
    later = [queue.draft("mail", delay=timedelta(hours=1)) for _ in range(5)]
    await queue.enqueue_many(later)
    id = await bulk.start(desk, "ann", Action.RUN_NOW, Filter(job_type=("mail",)))
    assert (await ended(queue, id)).result == {"matched": 5, "moved": 5}
    assert len(await queue.claim(["mail"], 10, worker_id="w")) == 5


async def test_it_goes_on_where_it_was_when_its_dashboard_stops(
    desk: Desk, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "PAGE", 10)
    monkeypatch.setattr(walk, "NOTE_EVERY", 0.0)
    ids = await made(queue, 5_000)
    id = await bulk.start(desk, "ann", Action.REPRIORITISE, Filter(job_type=("mail",)), 7)
    await eventually(lambda: _has_come_far(queue, id))
    await bulk.hands_of(desk).stop()
    assert (await queue.get(id)).status is State.PENDING
    await reprioritise(queue.store, ids[-50:], 3)  # the newest, which it has behind it
    bulk.hands_of(desk).needed()
    job = await ended(queue, id)
    assert 5_000 <= job.result["matched"] < 5_500
    assert await bulk.count(desk, Action.CANCEL, Filter(priority=7)) == Count(4_950)
    assert await bulk.count(desk, Action.CANCEL, Filter(priority=3)) == Count(50)


async def _has_come_far(queue: Queue, id: UUID) -> bool:
    return (await queue.get(id)).progress >= 20


async def test_it_can_be_cancelled(
    desk: Desk, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "PAGE", 1)
    await made(queue, 10_000)
    id = await bulk.start(desk, "ann", Action.CANCEL, Filter(job_type=("mail",)))
    await eventually(lambda: _has_begun(queue, id))
    await queue.cancel([id])
    await eventually(lambda: _is_empty(queue))
    assert (await counts(queue))[State.PENDING] > 0


async def _has_begun(queue: Queue, id: UUID) -> bool:
    return (await queue.get(id)).current_stage is not None


async def _is_empty(queue: Queue) -> bool:
    return await crew(queue.store) == []


async def test_beyond_what_is_counted_it_says_so_and_still_moves(
    desk: Desk, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "PAGE", 10)
    monkeypatch.setattr(counting, "EXACTLY", 100)
    for _ in range(20):
        await made(queue, 100)
    id = await bulk.start(desk, "ann", Action.CANCEL, Filter(job_type=("mail",)))
    seen = [e async for e in queue.handle(id).events() if isinstance(e, Progressed)]
    percents = [event.percent for event in seen]
    assert percents == sorted(percents)
    assert any(0 < percent < 99 for percent in percents)
    assert any(event.stage and event.stage.endswith(" of 100+") for event in seen)


async def test_a_bulk_job_that_was_left_behind_is_run_by_the_next_dashboard(queue: Queue) -> None:
    await made(queue, 3)
    id = await ordered(queue, CANCEL, SECRET)
    async with served(queue, access=anybody(), secret=SECRET) as where:
        async with httpx.AsyncClient(base_url=where.url) as client:
            assert (await client.get("/")).status_code == 200
        assert await queue.handle(id).result(timeout=30) == {"matched": 3, "moved": 3}


async def refused(queue: Queue, desk: Desk, id: UUID) -> str:
    """Let the dashboard meet the order; returns why it refused it."""
    bulk.hands_of(desk).needed()
    job = await ended(queue, id)
    assert (job.status, job.attempts) == (State.FAILED, 1)
    return job.last_error or ""


async def test_an_order_that_no_dashboard_gave_moves_nothing(desk: Desk, queue: Queue) -> None:
    """Whoever may only enqueue must not act through a dashboard that may do more."""
    (mail,) = await made(queue, 1)
    written = CANCEL.payload()
    signed = CANCEL.signed(desk.secret, new_id())
    other = bulk.Order(action=Action.CANCEL, filter=Filter(), who="ann")
    for forged in (written, {**written, "signature": "0" * 64}, {**written, "signature": "é"}):
        id = await by_sql(queue, forged)
        assert "was not given by this dashboard" in await refused(queue, desk, id)
    id = await by_sql(queue, signed)  # as it stands in another job
    assert "copied from another job" in await refused(queue, desk, id)
    for changed in (
        {"action": "requeue"},
        {"filter": other.payload()["filter"]},
        {"who": "eve"},
        {"action": "reprioritise", "priority": 3},
    ):
        id = new_id()
        id = await by_sql(queue, {**CANCEL.signed(desk.secret, id), **changed}, id)
        assert "HOWDAH_WEB_SECRET" in await refused(queue, desk, id)
    assert (await queue.get(mail)).status is State.PENDING


async def test_an_order_of_another_secret_moves_nothing(desk: Desk, queue: Queue) -> None:
    (mail,) = await made(queue, 1)
    id = await ordered(queue, CANCEL, SECRET)
    assert "was not given by this dashboard" in await refused(queue, desk, id)
    assert (await queue.get(mail)).status is State.PENDING


@pytest.mark.parametrize(
    "asked",
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
async def test_an_order_is_kept_exactly(desk: Desk, queue: Queue, asked: Filter) -> None:
    order = bulk.Order(action=Action.REQUEUE, filter=asked, who="ann")
    id = await ordered(queue, order, desk.secret)
    kept = (await queue.get(id)).data
    again = msgspec.convert(kept, bulk.Order)
    assert again == order
    again.check(desk.secret, id, kept["signature"])


async def test_a_group_without_an_error_is_retried_alone(desk: Desk, queue: Queue) -> None:
    silent, loud = await failed(queue, 2)
    await queue.store.fetch("update howdah.jobs set last_error = null where id = $1", silent)
    groups = (await failures(queue.store)).groups
    (group,) = [one for one in groups if one.fingerprint == ""]
    id = await bulk.start(desk, "ann", Action.REQUEUE, group.filter)
    assert (await ended(queue, id)).result == {"matched": 1, "moved": 1}
    assert (await queue.get(silent)).status is State.PENDING
    assert (await queue.get(loud)).status is State.FAILED


async def test_nobody_stays_when_it_is_done_and_the_queue_knows_no_more_than_before(
    desk: Desk, queue: Queue
) -> None:
    await made(queue, 3)
    id = await bulk.start(desk, "ann", Action.CANCEL, Filter(job_type=("mail",)))
    await ended(queue, id)
    await eventually(lambda: _is_empty(queue))
    assert dict(queue.handlers) == {}


async def test_nobody_stays_for_a_bulk_job_that_is_due_in_another_century(
    desk: Desk, queue: Queue
) -> None:
    """Whoever may enqueue may date a job as they like: no worker waits for it."""
    await queue.enqueue(bulk.BULK, {}, run_at=datetime(2090, 1, 1, tzinfo=UTC))
    bulk.hands_of(desk).needed()
    await eventually(lambda: hands() == [])
    assert await crew(queue.store) == []
    await made(queue, 3)  # and it keeps nobody from what is due
    id = await bulk.start(desk, "ann", Action.CANCEL, Filter(job_type=("mail",)))
    assert (await ended(queue, id)).result == {"matched": 3, "moved": 3}
    await eventually(lambda: hands() == [])
    assert await crew(queue.store) == []


async def test_nobody_stays_for_bulk_jobs_that_are_paused(desk: Desk, queue: Queue) -> None:
    await pause(queue.store, bulk.BULK)
    id = await bulk.start(desk, "ann", Action.CANCEL, Filter(job_type=("mail",)))
    await eventually(lambda: hands() == [])
    assert await crew(queue.store) == []
    await resume(queue.store, bulk.BULK)
    bulk.hands_of(desk).needed()
    assert (await ended(queue, id)).result == {"matched": 0, "moved": 0}


async def test_a_retry_that_is_due_soon_is_waited_for_and_a_later_one_is_not(
    desk: Desk, queue: Queue
) -> None:
    await made(queue, 1)
    id = await ordered(queue, CANCEL, desk.secret)
    for seconds, stays in ((3600, False), (1, True)):
        (claim,) = await queue.claim([bulk.BULK], 1, worker_id="w")
        await queue.fail_many([claim], ["lost"], retry=True)
        await queue.store.fetch(
            "update howdah.jobs set run_at = howdah.clock() + make_interval(secs => $2) "
            "where id = $1",
            id,
            float(seconds),
        )
        bulk.hands_of(desk).needed()
        if stays:
            assert (await ended(queue, id)).result == {"matched": 1, "moved": 1}
        else:
            await eventually(lambda: hands() == [])
            await run_now(queue.store, [id])


async def test_a_cancelled_job_tells_who_cancelled_it(desk: Desk, queue: Queue) -> None:
    (one,) = await made(queue, 1)
    await ended(queue, await bulk.start(desk, "ann", Action.CANCEL, Filter(job_type=("mail",))))
    assert (await queue.get(one)).last_error == "cancelled by ann"


async def test_the_order_leaves_an_audit_line(
    desk: Desk, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "howdah.web")
    id = await bulk.start(
        desk, "ann", Action.REPRIORITISE, Filter(job_type=("mail",), attempts_from=0), 7
    )
    (line,) = [one.getMessage() for one in caplog.records if "web.action" in one.getMessage()]
    assert f'who="ann" did=bulk on="{id}" action="reprioritise"' in line
    assert "mail" in line
    assert 'priority="7"' in line
    assert "attempts_from" in line


@pytest.mark.parametrize(
    ("action", "priority"),
    [(Action.CLONE, None), (Action.REPRIORITISE, None), (Action.CANCEL, 3)],
)
async def test_what_makes_no_sense_is_refused_before_anything_is_queued(
    desk: Desk, queue: Queue, action: Action, priority: int | None
) -> None:
    with pytest.raises(BadInput):
        await bulk.start(desk, "ann", action, Filter(), priority)
    assert await queue.counts() == {}
