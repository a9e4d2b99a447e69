"""A step that has ended is not run again, whatever becomes of its attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from howdah import (
    Backoff,
    BadInput,
    Fail,
    JobContext,
    JobFailed,
    Queue,
    StaleLease,
    State,
    StepMismatch,
)
from tests.support.waiting import eventually

AT_ONCE = Backoff(first=timedelta(0))


@dataclass
class Receipt:
    number: int
    paid: timedelta


async def steps_of(queue: Queue, id: object) -> list[tuple[Any, ...]]:
    rows = await queue.store.fetch(
        "select kind, name, number, result from howdah.job_steps where job_id = $1 "
        "order by ended_at, name, number",
        id,
    )
    return [tuple(row) for row in rows]


async def test_a_finished_step_is_not_run_again_after_a_failure(queue: Queue) -> None:
    ran: list[str] = []

    async def charge(order: int) -> Receipt:
        ran.append(f"charge {order}")
        return Receipt(order, timedelta(minutes=2))

    async def ship(receipt: Receipt) -> str:
        ran.append(f"ship {receipt.number}")
        if ran.count("ship 7") < 3:
            raise ConnectionError("no van")
        return "shipped"

    @queue.job(max_attempts=3, backoff=AT_ONCE)
    async def order(ctx: JobContext, number: int) -> str:
        receipt = await ctx.step("charge", charge, number)
        assert receipt == Receipt(7, timedelta(minutes=2)), "the type of the annotation"
        return await ctx.step("ship", ship, receipt=receipt)

    handle = await order.enqueue(number=7)
    async with queue.worker():
        assert await handle.result(timeout=10) == "shipped"
    assert ran == ["charge 7", "ship 7", "ship 7", "ship 7"]
    assert [step[1] for step in await steps_of(queue, handle.id)] == ["charge", "ship"]


async def test_a_step_returns_the_same_in_every_attempt(queue: Queue) -> None:
    """A tuple is a list already when it is returned for the first time."""
    seen: list[object] = []

    async def pair():  # type: ignore[no-untyped-def]  # pyright: ignore
        return (1, 2)

    @queue.job(max_attempts=2, backoff=AT_ONCE)
    async def work(ctx: JobContext) -> None:
        seen.append(await ctx.step("pair", pair))
        if ctx.attempt == 1:
            raise ValueError

    handle = await work.enqueue()
    async with queue.worker():
        await handle.result(timeout=10)
    assert seen == [[1, 2], [1, 2]]


async def test_steps_in_a_loop_are_counted(queue: Queue) -> None:
    ran: list[int] = []

    async def fetch(page: int) -> int:
        ran.append(page)
        return page * 10

    @queue.job(max_attempts=2, backoff=AT_ONCE)
    async def crawl(ctx: JobContext) -> list[int]:
        pages: list[int] = []
        for page in range(5):
            if page == 3 and ctx.attempt == 1:
                raise ConnectionError
            pages.append(await ctx.step("fetch", fetch, page))
        return pages

    handle = await crawl.enqueue()
    async with queue.worker():
        assert await handle.result(timeout=10) == [0, 10, 20, 30, 40]
    assert ran == [0, 1, 2, 3, 4]


async def test_steps_side_by_side_keep_their_numbers_in_any_order(queue: Queue) -> None:
    """They end in the opposite order of their calls, and one of them fails."""
    ran: list[int] = []

    async def fetch(n: int) -> int:
        await asyncio.sleep(0.01 * (5 - n))
        ran.append(n)
        if n == 2 and ran.count(2) == 1:
            await asyncio.sleep(0.1)  # the others have ended
            raise ConnectionError
        return n

    @queue.job(max_attempts=2, backoff=AT_ONCE)
    async def work(ctx: JobContext) -> list[int]:
        return await asyncio.gather(*(ctx.step("fetch", fetch, n) for n in range(5)))

    handle = await work.enqueue()
    async with queue.worker():
        assert await handle.result(timeout=10) == [0, 1, 2, 3, 4]
    assert sorted(ran) == [0, 1, 2, 2, 3, 4]


async def test_a_task_group_names_its_steps(queue: Queue) -> None:
    ran: list[str] = []

    async def get(url: str) -> str:
        ran.append(url)
        return url.upper()

    @queue.job(max_attempts=2, backoff=AT_ONCE)
    async def work(ctx: JobContext) -> list[str]:
        async def one(url: str) -> str:
            return await ctx.step(f"get {url}", get, url)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(url)) for url in "abc"]
        if ctx.attempt == 1:
            raise ConnectionError
        return [task.result() for task in tasks]

    handle = await work.enqueue()
    async with queue.worker():
        assert await handle.result(timeout=10) == ["A", "B", "C"]
    assert sorted(ran) == ["a", "b", "c"]


async def test_one_name_in_two_tasks_is_refused_because_their_order_may_differ(
    queue: Queue,
) -> None:
    async def get(url: str) -> str:
        return url

    @queue.job(max_attempts=1)
    async def work(ctx: JobContext) -> None:
        async def one(url: str) -> str:
            return await ctx.step("get", get, url)

        await one("first")
        await asyncio.create_task(one("second"))

    handle = await work.enqueue()
    async with queue.worker():
        with pytest.raises(
            JobFailed, match=r"the step 'get' \(number 2\) is asked for by two tasks"
        ):
            await handle.result(timeout=10)


async def test_one_name_in_two_threads_is_refused(queue: Queue) -> None:
    def get(url: str) -> str:
        return url

    @queue.job(max_attempts=1)
    def work(ctx: JobContext) -> None:
        ctx.step("get", get, "a")
        with ThreadPoolExecutor(1) as pool:
            pool.submit(ctx.step, "other", get, "b").result()
            pool.submit(ctx.step, "get", get, "b").result()

    handle = await work.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed, match="asked for by two tasks or threads"):
            await handle.result(timeout=10)


async def test_a_plain_handler_calls_its_steps(queue: Queue) -> None:
    ran: list[str] = []

    def charge(order: int) -> Receipt:
        ran.append("charge")
        return Receipt(order, timedelta(1))

    @queue.job(max_attempts=2, backoff=AT_ONCE)
    def order(ctx: JobContext, number: int) -> int:
        receipt = ctx.step("charge", charge, number)
        assert isinstance(receipt, Receipt)
        if ctx.attempt == 1:
            raise ConnectionError
        return receipt.number

    handle = await order.enqueue(number=7)
    async with queue.worker():
        assert await handle.result(timeout=10) == 7
    assert ran == ["charge"]


async def test_an_async_step_of_a_plain_handler_is_refused(queue: Queue) -> None:
    async def charge() -> int:
        return 1

    @queue.job(max_attempts=1)
    def order(ctx: JobContext) -> None:
        ctx.step("charge", charge)

    handle = await order.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed, match="is an async function in a plain handler"):
            await handle.result(timeout=10)


async def test_a_plain_handler_may_run_an_event_loop_of_its_own(queue: Queue) -> None:
    async def double(n: int) -> int:
        return 2 * n

    @queue.job
    def work(ctx: JobContext) -> list[int]:
        async def steps() -> list[int]:
            return await asyncio.gather(*(ctx.step("double", double, n) for n in range(3)))

        return asyncio.run(steps())

    handle = await work.enqueue()
    async with queue.worker():
        assert await handle.result(timeout=10) == [0, 2, 4]


async def test_a_step_whose_function_has_changed_is_named(queue: Queue) -> None:
    async def charge() -> int:
        return 1

    async def refund() -> int:
        return 2

    function: list[Callable[[], Awaitable[int]]] = [charge]

    @queue.job(max_attempts=2, backoff=AT_ONCE)
    async def order(ctx: JobContext) -> None:
        await ctx.step("pay", partial(function[0]))
        function[0] = refund
        raise ConnectionError

    handle = await order.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed, match=r"StepMismatch: the step 'pay' of job .* is stored "):
            await handle.result(timeout=10)
    error = (await handle.job()).last_error
    assert error is not None
    assert "charge, and the code calls" in error


async def test_a_stored_result_that_does_not_fit_any_more_is_named(queue: Queue) -> None:
    async def count() -> int:
        return 1

    @queue.job(max_attempts=3, backoff=AT_ONCE)
    async def work(ctx: JobContext) -> str:
        try:
            await ctx.step("count", count)
        except StepMismatch as error:
            return str(error)
        await queue.store.fetch("update howdah.job_steps set result = '\"many\"'")
        raise ConnectionError

    handle = await work.enqueue()
    async with queue.worker():
        message = await handle.result(timeout=10)
    assert "the step 'count' of job" in message
    assert "does not fit int" in message


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (object(), "is not JSON"),
        ("x" * 300_000, "the limit is 262,144"),
        (float("nan"), "contains nan"),
        ("a\0b", "contains a NUL character"),
        ("no number", "does not fit int"),
    ],
)
async def test_a_result_that_cannot_be_stored_fails_the_job_for_good(
    queue: Queue, value: object, why: str
) -> None:
    """A retry would run the step again."""
    ran: list[int] = []

    async def charge() -> int:
        ran.append(1)
        return value  # type: ignore[return-value]  # pyright: ignore

    @queue.job(max_attempts=3, backoff=AT_ONCE)
    async def order(ctx: JobContext) -> None:
        await ctx.step("charge", charge)

    handle = await order.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed, match=f"'charge' has run, and its result cannot be.*{why}"):
            await handle.result(timeout=10)
    assert ran == [1]


async def test_a_worker_that_has_lost_the_job_cannot_store_a_step(queue: Queue) -> None:
    errors: list[BaseException] = []
    began, go_on = asyncio.Event(), asyncio.Event()

    async def charge() -> int:
        began.set()
        with_cancel = asyncio.ensure_future(go_on.wait())
        while not with_cancel.done():  # goes on although its task is cancelled
            try:
                await asyncio.shield(with_cancel)
            except asyncio.CancelledError:
                errors.append(asyncio.CancelledError())
        return 1

    @queue.job(max_attempts=1)
    async def order(ctx: JobContext) -> None:
        try:
            await ctx.step("charge", charge)
        except StaleLease as error:
            errors.append(error)

    handle = await order.enqueue()
    async with queue.worker():
        await asyncio.wait_for(began.wait(), 10)
        await handle.cancel()
        await eventually(lambda: bool(errors), "the handler hears of it")
        go_on.set()
        await eventually(lambda: len(errors) > 1, "the step is refused")
    assert isinstance(errors[-1], StaleLease)
    assert await steps_of(queue, handle.id) == []


async def test_a_step_whose_connection_is_cut_is_stored_again(queue: Queue, dsn: str) -> None:
    ran: list[int] = []

    async with Queue(dsn) as operator:

        async def charge() -> int:
            ran.append(1)
            await operator.store.fetch(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where datname = current_database() and pid <> pg_backend_pid()"
            )
            return 7

        @queue.job(max_attempts=1)
        async def order(ctx: JobContext) -> int:
            return await ctx.step("charge", charge) + await ctx.step("again", charge)

        handle = await order.enqueue()
        async with queue.worker():
            await eventually(lambda: len(ran) == 2, "both steps have run")
            assert await handle.result(timeout=30) == 14
        assert ran == [1, 1]
        assert [step[1] for step in await steps_of(operator, handle.id)] == ["charge", "again"]


async def test_steps_that_end_together_are_stored_together(queue: Queue) -> None:
    async def work_of(n: int) -> int:
        return n

    @queue.job
    async def work(ctx: JobContext) -> None:
        await asyncio.gather(*(ctx.step("n", work_of, n) for n in range(20)))

    handle = await work.enqueue()
    async with queue.worker():
        await handle.result(timeout=10)
    transactions = "select count(distinct xmin::text), count(*) from howdah.job_steps"
    assert tuple((await queue.store.fetch(transactions))[0]) == (1, 20)


async def test_a_job_without_steps_makes_no_call_for_them(queue: Queue) -> None:
    @queue.job(max_attempts=2, backoff=AT_ONCE)
    async def plain(ctx: JobContext) -> None:
        if ctx.attempt == 1:
            raise ConnectionError

    for function in ("load_steps", "save_steps", "await_signals", "suspend"):
        await queue.store.fetch(f"drop function howdah.{function}")
    handle = await plain.enqueue()
    async with queue.worker():
        await handle.result(timeout=10)


async def test_a_requeued_job_goes_on_after_its_last_step(queue: Queue) -> None:
    ran: list[str] = []

    async def charge() -> None:
        ran.append("charge")

    @queue.job(max_attempts=1)
    async def order(ctx: JobContext) -> None:
        await ctx.step("charge", charge)
        if ctx.attempt == 1:
            raise Fail("no van")

    handle = await order.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed):
            await handle.result(timeout=10)
        await handle.requeue()
        await handle.result(timeout=10)
    assert ran == ["charge"]


async def test_a_job_that_was_released_while_it_ran_keeps_its_steps(queue: Queue) -> None:
    """Its next attempt has the same number, and its place in the line has not changed."""
    ran: list[str] = []
    charged = asyncio.Event()

    async def charge() -> None:
        ran.append("charge")

    @queue.job(max_attempts=1)
    async def order(ctx: JobContext) -> int:
        await ctx.step("charge", charge)
        if not charged.is_set():
            charged.set()
            await asyncio.Event().wait()
        return ctx.attempt

    handle = await order.enqueue()
    async with queue.worker(grace=0):
        await asyncio.wait_for(charged.wait(), 10)
    assert await handle.status() is State.PENDING
    async with queue.worker():
        assert await handle.result(timeout=10) == 1
    assert ran == ["charge"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", print), "the name of a step must be text of 1 to 200 characters, not ''"),
        (("x" * 201, print), "the name of a step must be text of 1 to 200 characters"),
        ((7, print), "the name of a step must be text of 1 to 200 characters, not 7"),
        (("a\nb", print), "the name of a step must have no control characters"),
        (("a", 7), "a step is given a function and its arguments, not 7"),
    ],
)
async def test_bad_arguments_are_named(
    queue: Queue, arguments: tuple[Any, ...], message: str
) -> None:
    @queue.job
    async def work(ctx: JobContext) -> str:
        with pytest.raises(BadInput) as refused:
            ctx.step(*arguments)
        return str(refused.value)

    handle = await work.enqueue()
    async with queue.worker():
        assert message in await handle.result(timeout=10)


async def test_a_step_cannot_sleep(queue: Queue) -> None:
    @queue.job(max_attempts=1)
    async def work(ctx: JobContext) -> None:
        async def nap() -> None:
            await ctx.sleep(3600)

        await ctx.step("nap", nap)

    handle = await work.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed, match="the step 'nap' cannot sleep or wait for a signal"):
            await handle.result(timeout=10)
