"""A report that the database refuses costs at most its own job: all others are written.

The database itself refuses: by a constraint, or because a number is taken.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from howdah import Emitted, JobContext, Queue, State
from howdah.client.handle import Handle
from tests.support.waiting import eventually

NO_BAD_EVENTS = "alter table howdah.job_events add constraint no_bad_events check (kind <> 'bad')"
NO_BAD_STAGES = (
    "alter table howdah.jobs_live add constraint no_bad_stages check (current_stage <> 'bad')"
)
NO_BAD_STARTS = (
    "alter table howdah.jobs_live add constraint no_bad_starts "
    "check (job_type <> 'talk' or status <> 'running' or data ->> 'word' <> 'bad')"
)


async def refuse(queue: Queue, sql: str) -> None:
    await queue.store.fetch(sql)


async def kinds(handle: Handle[Any]) -> list[str]:
    return [event.kind async for event in handle.events() if isinstance(event, Emitted)]


def register_talk(queue: Queue) -> None:
    @queue.job
    async def talk(ctx: JobContext, word: str) -> str:
        ctx.emit("before")
        ctx.emit(word)
        ctx.emit("after")
        ctx.progress(50, word)
        return word

    assert talk


WORDS = ["a", "b", "bad", "c", "d", "bad", "e"]


async def enqueued(queue: Queue) -> list[Handle[Any]]:
    return [await queue.enqueue("talk", {"word": word}) for word in WORDS]


async def test_an_event_that_is_refused_fails_its_attempt_and_no_other(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    register_talk(queue)
    await refuse(queue, NO_BAD_EVENTS)
    handles = await enqueued(queue)
    async with asyncio.timeout(60), queue.worker(concurrency=10) as worker:
        await worker.run_until_idle()
        assert worker.free_slots == 10
    for word, handle in zip(WORDS, handles, strict=True):
        job = await handle.job()
        if word == "bad":
            assert job.status is State.FAILED
            assert job.last_error == ("its event 'bad' could not be stored: refused: no bad events")
            assert await kinds(handle) == ["before", "after"]
        else:
            assert (job.status, job.result) == (State.COMPLETED, word)
            assert await kinds(handle) == ["before", word, "after"]
    lines = [r.getMessage() for r in caplog.records if "event.refused" in r.getMessage()]
    assert len(lines) == 2
    assert all(
        str(h.id) in "".join(lines) for h, w in zip(handles, WORDS, strict=True) if w == "bad"
    )


async def test_a_refused_event_of_a_running_job_fails_it_when_it_ends(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    may_end = asyncio.Event()

    @queue.job
    async def wait(ctx: JobContext, kind: str) -> str:
        ctx.emit(kind)
        await may_end.wait()
        return kind

    await refuse(queue, NO_BAD_EVENTS)
    bad, good = await wait.enqueue("bad"), await wait.enqueue("good")
    async with asyncio.timeout(60), queue.worker(concurrency=10) as worker:
        await eventually(lambda: "event.refused" in caplog.text)
        assert worker.free_slots == 8, "both jobs still run"
        may_end.set()
        await worker.run_until_idle()
    assert (await good.job()).status is State.COMPLETED
    assert await kinds(good) == ["good"]
    assert "its event 'bad' could not be stored" in ((await bad.job()).last_error or "")
    assert not worker._started().reports.refused, "the refusal is removed"  # pyright: ignore[reportPrivateUsage]


async def test_an_event_whose_number_exists_ends_no_worker(queue: Queue) -> None:
    register_talk(queue)
    taken, other = (
        await queue.enqueue("talk", {"word": "a"}),
        await queue.enqueue("talk", {"word": "b"}),
    )
    await queue.store.fetch(
        "insert into howdah.job_events (job_id, number, kind, attempt, created_at, day) "
        "select $1, 2, 'of an older run', 1, now(), howdah.today()",
        taken.id,
    )
    async with asyncio.timeout(60), queue.worker() as worker:
        await worker.run_until_idle()
        assert (await (await queue.enqueue("talk", {"word": "c"})).result(timeout=20)) == "c"
    assert (await other.job()).status is State.COMPLETED
    assert await kinds(other) == ["before", "b", "after"]
    assert (await taken.job()).status in (State.FAILED, State.COMPLETED)


@pytest.mark.parametrize(
    ("sql", "word"),
    [(NO_BAD_STAGES, "progress.refused"), (NO_BAD_STARTS, "start.refused")],
    ids=["progress", "start"],
)
async def test_refused_progress_and_starts_are_dropped_and_logged(
    queue: Queue, caplog: pytest.LogCaptureFixture, sql: str, word: str
) -> None:
    register_talk(queue)
    may_end = asyncio.Event()

    @queue.job
    async def linger(ctx: JobContext, stage: str) -> None:
        ctx.progress(50, stage)
        await may_end.wait()

    await refuse(queue, sql.replace("'talk'", "'linger'").replace("word", "stage"))
    bad, good = await linger.enqueue("bad"), await linger.enqueue("good")
    async with asyncio.timeout(60), queue.worker() as worker:
        await eventually(lambda: word in caplog.text)
        assert str(bad.id) in caplog.text
        await eventually(lambda: shows(good, "good"))
        may_end.set()
        await worker.run_until_idle()
    assert [(await handle.job()).status for handle in (bad, good)] == [State.COMPLETED] * 2


async def shows(handle: Handle[Any], stage: str) -> bool:
    job = await handle.job()
    return (job.status, job.current_stage) == (State.RUNNING, stage)


async def test_events_are_not_written_twice_when_the_connection_is_lost(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch is split, and the connection is lost after its first part."""
    from howdah.store import run as store_run
    from howdah.store.errors import Transient

    register_talk(queue)
    await refuse(queue, NO_BAD_EVENTS)
    handles = await enqueued(queue)
    original, written, failures = store_run.emit, 0, 0

    async def emit(*args: Any) -> Any:
        nonlocal written, failures
        if written and failures < 3:
            failures += 1
            raise Transient("gone for a moment")
        answer = await original(*args)
        written += 1
        return answer

    monkeypatch.setattr(store_run, "emit", emit)
    async with asyncio.timeout(60), queue.worker(concurrency=10) as worker:
        await worker.run_until_idle()
    assert failures == 3
    for word, handle in zip(WORDS, handles, strict=True):
        expected = ["before", "after"] if word == "bad" else ["before", word, "after"]
        assert await kinds(handle) == expected
        assert (await handle.job()).status is (State.FAILED if word == "bad" else State.COMPLETED)


async def test_only_the_refused_endings_of_a_batch_fail(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "howdah")

    @queue.job
    async def answer(n: int) -> int:
        return n

    await refuse(
        queue,
        "alter table howdah.jobs_finished add constraint no_sevens check (result <> '7'::jsonb)",
    )
    handles = [await answer.enqueue(n) for n in range(50)]
    async with asyncio.timeout(60), queue.worker(concurrency=50) as worker:
        await worker.run_until_idle()
        assert worker.free_slots == 50
    jobs = [await handle.job() for handle in handles]
    assert [n for n, job in enumerate(jobs) if job.status is not State.COMPLETED] == [7]
    assert jobs[7].last_error == "its ending could not be stored: refused: no sevens"
    assert [job.result for job in jobs if job.status is State.COMPLETED] == [
        n for n in range(50) if n != 7
    ]


async def test_a_job_whose_failure_is_refused_too_delays_no_other(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    @queue.job
    async def answer(n: int) -> int:
        return n

    handles = [await answer.enqueue(n) for n in range(20)]
    id = handles[7].id
    await refuse(
        queue, f"alter table howdah.jobs_finished add constraint not_this check (id <> '{id}')"
    )
    async with asyncio.timeout(60), queue.worker(concurrency=20) as worker:
        await worker.run_until_idle()
        assert "settle.given_up" in caplog.text
        assert worker.free_slots == 20
        assert await (await answer.enqueue(99)).result(timeout=20) == 99
    states = [(await handle.job()).status for handle in handles]
    assert [n for n, state in enumerate(states) if state is not State.COMPLETED] == [7]
