"""A handler sleeps and waits for signals without a slot, and goes on from the top."""

from __future__ import annotations

import asyncio
import os
import signal as signals
import sys
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from howdah import (
    Backoff,
    BadInput,
    Handle,
    JobContext,
    JobEnded,
    JobFailed,
    JobNotFound,
    PayloadTooLarge,
    Queue,
    SignalTimeout,
    State,
)
from howdah.observe import Reason
from howdah.store import steer
from tests.run import step_jobs
from tests.support.waiting import eventually

AT_ONCE = Backoff(first=timedelta(0))
DAY = timedelta(days=1)


async def asleep(handle: Handle[Any]) -> None:
    """Wait until a job was put back."""

    async def is_asleep() -> bool:
        return await handle._store.fetchval(  # pyright: ignore[reportPrivateUsage]
            "select exists (select from howdah.jobs_live where id = $1 and status = 'pending' "
            "and ready_at is null)",
            handle.id,
        )

    await eventually(is_asleep, "the job sleeps")


async def test_a_sleep_gives_the_slot_back_and_goes_on_after_it(queue: Queue) -> None:
    began: list[int] = []
    cleaned: list[str] = []

    async def charge() -> str:
        return "charged"

    @queue.job(max_attempts=1)
    async def order(ctx: JobContext) -> str:
        began.append(ctx.attempt)
        try:
            charged = await ctx.step("charge", charge)
            await ctx.sleep(3 * DAY)
        finally:
            cleaned.append("finally")
        return charged

    @queue.job
    async def other() -> str:
        return "other"

    handle = await order.enqueue()
    async with queue.worker(concurrency=1):
        await asleep(handle)
        assert await (await other.enqueue()).result(timeout=10) == "other"
        why = await handle_why(queue, handle.id)
        assert why[0] is Reason.SLEEPING
        assert "It sleeps until " in why[1]
        assert await steer.run_now(queue.store, [handle.id]) == {handle.id}
        assert await handle.result(timeout=10) == "charged"
    assert began == [1, 1], "neither counts as another attempt"
    assert cleaned == ["finally", "finally"]
    assert (await handle.job()).errors == []


async def handle_why(queue: Queue, id: UUID) -> tuple[Reason, str]:
    why = await queue.why(id)
    return why.reason, why.sentence


async def test_a_sleep_that_has_ended_returns_at_once(queue: Queue) -> None:
    began: list[int] = []

    @queue.job(max_attempts=1)
    async def nap(ctx: JobContext) -> str:
        began.append(1)
        await ctx.sleep(1.2)
        await ctx.sleep(1.2)
        return "up"

    handle = await nap.enqueue()
    async with queue.worker():
        assert await handle.result(timeout=20) == "up"
    assert len(began) == 3


async def test_a_short_sleep_waits_in_its_slot(queue: Queue) -> None:
    began: list[int] = []

    @queue.job
    async def nap(ctx: JobContext) -> None:
        began.append(1)
        await ctx.sleep(0.01)

    @queue.job
    def plain_nap(ctx: JobContext) -> None:
        began.append(1)
        ctx.sleep(0.01)

    handles = [await nap.enqueue(), await plain_nap.enqueue()]
    async with queue.worker():
        for handle in handles:
            await handle.result(timeout=10)
    assert len(began) == 2


async def test_a_signal_that_comes_later_wakes_the_job(queue: Queue) -> None:
    @queue.job(max_attempts=1)
    async def order(ctx: JobContext) -> dict[str, str]:
        return await ctx.wait_for("approved", timeout=DAY)

    handle = await order.enqueue()
    async with queue.worker():
        await asleep(handle)
        reason, sentence = await handle_why(queue, handle.id)
        assert reason is Reason.WAITING_FOR_SIGNAL
        assert "It waits for the signal approved since " in sentence
        assert " until " in sentence
        assert f"`howdah signal {handle.id} approved` sends it." in sentence
        assert not await handle.signal("another")
        assert await handle.signal("approved", {"by": "ann"})
        assert await handle.result(timeout=10) == {"by": "ann"}


async def test_a_signal_that_came_first_is_there(queue: Queue) -> None:
    began: list[int] = []

    @queue.job
    async def order(ctx: JobContext) -> list[object]:
        began.append(1)
        return [await ctx.wait_for("go"), await ctx.wait_for("go")]

    handle = await order.enqueue()
    assert not await queue.signal(str(handle.id), "go", 1)
    assert not await queue.signal(handle.id, "go", [2])
    async with queue.worker():
        assert await handle.result(timeout=10) == [1, [2]]
    assert len(began) == 1, "it never had to sleep"


async def test_a_wait_that_times_out_raises(queue: Queue) -> None:
    @queue.job(max_attempts=2, backoff=AT_ONCE)
    async def order(ctx: JobContext) -> str:
        try:
            await ctx.wait_for("approved", timeout=0.05)
        except SignalTimeout as error:
            if ctx.attempt == 1:
                await queue.signal(ctx.id, "approved")
                raise ConnectionError from None
            return str(error)
        return "approved"

    handle = await order.enqueue()
    async with queue.worker():
        message = await handle.result(timeout=10)
    assert message == f"no signal 'approved' came to job {handle.id} in time", "as before"


async def test_a_plain_handler_sleeps_and_waits(queue: Queue) -> None:
    cleaned: list[int] = []

    @queue.job(max_attempts=1)
    def order(ctx: JobContext) -> object:
        try:
            ctx.sleep(DAY)
            return ctx.wait_for("go")
        finally:
            cleaned.append(1)

    handle = await order.enqueue()
    async with queue.worker():
        await asleep(handle)
        await steer.run_now(queue.store, [handle.id])
        await eventually(lambda: len(cleaned) == 2, "it waits for the signal")
        await handle.signal("go", 7)
        assert await handle.result(timeout=10) == 7
    assert len(cleaned) in (2, 3)


async def test_a_sleep_beside_a_step_lets_the_step_end(queue: Queue) -> None:
    ran: list[str] = []

    async def slow(name: str) -> str:
        await asyncio.sleep(0.05)
        ran.append(name)
        return name

    @queue.job(max_attempts=1)
    async def work(ctx: JobContext) -> list[str]:
        async def both() -> str:
            return await ctx.step("a", slow, "a") + await ctx.step("b", slow, "b")

        async def signalled() -> str:
            return await ctx.wait_for("go")

        together, _, data = await asyncio.gather(both(), ctx.sleep(DAY), signalled())
        return [together, data]

    handle = await work.enqueue()
    async with queue.worker():
        await asleep(handle)
        assert ran == ["a", "b"]
        await handle.signal("go", "went")

        async def woken() -> bool:
            return bool(await steer.run_now(queue.store, [handle.id]))

        await eventually(woken, "it sleeps again, until the sleep ends")
        assert await handle.result(timeout=10) == ["ab", "went"]
    assert ran == ["a", "b"]


async def test_a_task_group_is_left_too(queue: Queue) -> None:
    @queue.job(max_attempts=1)
    async def work(ctx: JobContext) -> object:
        async with asyncio.TaskGroup() as group:
            first = group.create_task(ctx.wait_for("a"))
            second = group.create_task(ctx.wait_for("b"))
        return [first.result(), second.result()]

    handle = await work.enqueue()
    async with queue.worker():
        await asleep(handle)
        await handle.signal("a", 1)
        await handle.signal("b", 2)
        assert await handle.result(timeout=10) == [1, 2]


async def test_except_exception_does_not_catch_it(queue: Queue) -> None:
    caught: list[BaseException] = []

    @queue.job(max_attempts=1)
    async def work(ctx: JobContext) -> object:
        try:
            return await ctx.wait_for("go")
        except Exception as error:
            caught.append(error)
            raise

    handle = await work.enqueue()
    async with queue.worker():
        await asleep(handle)
        await handle.signal("go", 1)
        assert await handle.result(timeout=10) == 1
    assert caught == []


@pytest.mark.parametrize("plain", [False, True])
async def test_a_handler_that_swallows_it_fails(queue: Queue, plain: bool) -> None:
    if plain:

        @queue.job(max_attempts=3)
        def work(ctx: JobContext) -> str:
            with suppress(BaseException):
                ctx.sleep(DAY)
            return "done"
    else:

        @queue.job(max_attempts=3)
        async def work(ctx: JobContext) -> str:
            with suppress(BaseException):
                await ctx.sleep(DAY)
            return "done"

    handle = await work.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed, match=r"the handler went on after ctx\.sleep .* Suspended"):
            await handle.result(timeout=10)
    assert (await handle.job()).attempts == 1


async def test_a_step_in_a_finally_does_not_run_while_the_handler_is_left(queue: Queue) -> None:
    ran: list[int] = []

    async def clean() -> None:
        ran.append(1)

    @queue.job(max_attempts=1)
    async def work(ctx: JobContext) -> None:
        try:
            await ctx.wait_for("go")
        finally:
            await ctx.step("clean", clean)

    handle = await work.enqueue()
    async with queue.worker():
        await asleep(handle)
        assert ran == []
        await handle.signal("go")
        await handle.result(timeout=10)
    assert ran == [1]


async def test_a_cancelled_job_does_not_wake(queue: Queue) -> None:
    @queue.job
    async def work(ctx: JobContext) -> None:
        await ctx.wait_for("go")

    handle = await work.enqueue()
    async with queue.worker():
        await asleep(handle)
        await handle.cancel()
        with pytest.raises(JobEnded, match=f"job {handle.id} has ended as cancelled"):
            await handle.signal("go")


async def test_a_job_of_a_key_gives_its_slot_to_the_next_while_it_sleeps(queue: Queue) -> None:
    @queue.job(key="tenant")
    async def work(ctx: JobContext, tenant: int, n: int) -> int:
        if n == 1:
            await ctx.wait_for("go")
        return n

    first = await work.enqueue(tenant=1, n=1)
    async with queue.worker():
        await asleep(first)
        second = await work.enqueue(tenant=1, n=2)
        assert await second.result(timeout=10) == 2
        await first.signal("go")
        assert await first.result(timeout=10) == 1


# ── bad input ──


async def test_signals_to_no_job_and_bad_signals_are_named(queue: Queue) -> None:
    @queue.job
    async def work(ctx: JobContext) -> None: ...

    unknown = uuid4()
    with pytest.raises(JobNotFound, match=f"there is no job {unknown}"):
        await queue.signal(unknown, "go")
    handle = await work.enqueue()
    bad: list[tuple[tuple[Any, ...], type[Exception], str]] = [
        (("no-id", "go"), BadInput, "a job id must be a UUID"),
        ((handle.id, ""), BadInput, "the name of a signal must be text of 1 to 200"),
        ((handle.id, 7), BadInput, "the name of a signal must be text of 1 to 200"),
        ((handle.id, "a\nb"), BadInput, "must have no control characters"),
        ((handle.id, "go", object()), BadInput, "the data of the signal is not JSON"),
        ((handle.id, "go", "x" * 300_000), PayloadTooLarge, "the limit is 262144"),
    ]
    for arguments, kind, message in bad:
        with pytest.raises(kind, match=message):
            await queue.signal(*arguments)
    assert await queue.store.fetchval("select count(*) from howdah.job_signals") == 0


async def test_bad_lengths_are_named(queue: Queue) -> None:
    @queue.job
    async def work(ctx: JobContext) -> list[str]:
        messages: list[str] = []
        bad: list[Any] = [
            lambda: ctx.sleep(-1),
            lambda: ctx.sleep("1"),  # type: ignore[arg-type]  # pyright: ignore
            lambda: ctx.sleep(5, name=""),
            lambda: ctx.wait_for("a", timeout=-1),
            lambda: ctx.wait_for("", timeout=1),
        ]
        for call in bad:
            with pytest.raises(BadInput) as refused:
                call()
            messages.append(str(refused.value))
        return messages

    handle = await work.enqueue()
    async with queue.worker():
        messages = await handle.result(timeout=10)
    assert [message.partition(":")[0] for message in messages] == [
        "length=-1 is negative",
        "length must be a timedelta or a number of seconds, not '1'",
        "the name of a sleep must be text of 1 to 200 characters, not ''",
        "timeout=-1 is negative",
        "the name of a signal must be text of 1 to 200 characters, not ''",
    ]


# ── checkpoints ──


async def test_a_checkpoint_is_there_in_the_next_attempt(queue: Queue) -> None:
    seen: list[object] = []

    @queue.job(max_attempts=2, backoff=AT_ONCE)
    async def crawl(ctx: JobContext) -> None:
        seen.append(await ctx.last_checkpoint())
        for page in range(100):
            await ctx.checkpoint({"page": page})
        if ctx.attempt == 1:
            raise ConnectionError

    handle = await crawl.enqueue()
    async with queue.worker():
        await handle.result(timeout=10)
    assert seen == [None, {"page": 99}]
    assert await queue.store.fetchval("select count(*) from howdah.job_steps") == 1


@pytest.mark.parametrize(
    ("data", "why"), [(object(), "the checkpoint is not JSON"), ("x" * 300_000, "the limit is")]
)
async def test_a_bad_checkpoint_is_named(queue: Queue, data: object, why: str) -> None:
    @queue.job(max_attempts=1)
    async def crawl(ctx: JobContext) -> None:
        ctx.checkpoint(data)

    handle = await crawl.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed, match=why):
            await handle.result(timeout=10)


# ── processes ──


async def test_a_handler_in_a_process_has_steps_and_checkpoints(
    queue: Queue, tmp_path: Path
) -> None:
    file = tmp_path / "lines"
    job = queue.job(run="process", backoff=AT_ONCE)(step_jobs.in_process.function)
    handle = await job.enqueue(file=str(file))
    async with queue.worker(processes=1):
        assert await handle.result(timeout=30) == [1, 2, 3, 7]
    assert file.read_text() == "0\n1\n2\n"


async def test_a_handler_in_a_process_waits_for_a_signal(queue: Queue, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    job = queue.job(run="process")(step_jobs.async_in_process.function)
    handle = await job.enqueue(file=str(file))
    async with queue.worker(processes=1):
        await asleep(handle)
        await handle.signal("go", [1])
        assert await handle.result(timeout=30) == [1]
    assert file.read_text() == "before\n"


async def test_a_handler_in_a_process_that_swallows_it_fails(queue: Queue) -> None:
    job = queue.job(run="process", max_attempts=1)(step_jobs.swallows.function)
    handle = await job.enqueue()
    async with queue.worker(processes=1):
        with pytest.raises(JobFailed, match="the handler went on after"):
            await handle.result(timeout=30)


@pytest.mark.slow
async def test_a_worker_that_is_killed_between_two_steps_repeats_none(
    queue: Queue, tmp_path: Path
) -> None:
    """The worker kills itself after every second step; another one goes on."""
    file = tmp_path / "lines"
    job = queue.job(max_attempts=5)(step_jobs.killed.function)
    handle = await job.enqueue(file=str(file))
    killed = 0
    while not (await handle.status()).finished:
        worker = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.run.step_jobs", "0.5"),
            env={**os.environ, "STEPS_DSN": queue.store.dsn or ""},
        )
        died = asyncio.create_task(worker.wait())
        try:
            over = asyncio.create_task(handle.result(timeout=60))
            await asyncio.wait({died, over}, return_when=asyncio.FIRST_COMPLETED)
            killed += died.done() and died.result() == -signals.SIGKILL
            over.cancel()
            await asyncio.wait({over})
        finally:
            if worker.returncode is None:
                worker.kill()
            await died
    assert await handle.status() is State.COMPLETED
    assert killed == 3
    assert file.read_text().split() == [str(n) for n in range(6)]
