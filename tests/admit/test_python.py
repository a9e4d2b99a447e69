"""Keys and limits in Python: declared with a job type, given for one job, registered by workers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from howdah import BadInput, Queue, Rate
from tests.support.waiting import eventually

TENANT = UUID("01a1f21a-0049-7000-8000-07feec2be942")


async def key_of(queue: Queue, id: UUID) -> str | None:
    return await queue.store.fetchval("select key from howdah.jobs where id = $1", id)


async def test_a_key_is_a_parameter_a_function_or_an_option(queue: Queue) -> None:
    @queue.job(key="tenant_id")
    async def resize(tenant_id: int, path: str = "") -> None: ...

    def by_path(payload: Any) -> str:
        return payload["path"].split("/")[0]

    @queue.job(key=by_path)
    async def move(path: str) -> None: ...

    @queue.job
    async def mail() -> None: ...

    async def key(handle: Any) -> str | None:
        return await key_of(queue, handle.id)

    assert await key(await resize.enqueue(tenant_id=7)) == "7"
    assert await key(await resize.options(key="other").enqueue(tenant_id=7)) == "other"
    assert await key(await move.enqueue(path="a/b")) == "a"
    assert await key(await mail.enqueue()) is None
    assert await key(await mail.options(key=TENANT).enqueue()) == str(TENANT)
    assert await key(await queue.enqueue("resize", {"tenant_id": 8})) == "8"
    assert await key(await queue.enqueue("elsewhere", key="k")) == "k"
    ids = await resize.enqueue_many([{"tenant_id": n} for n in range(3)], returning="ids")
    assert [await key_of(queue, id) for id in ids] == ["0", "1", "2"]
    waiting = "select count(*) from howdah.jobs where admission = 'slot'"
    assert await queue.store.fetchval(waiting) == 9


BAD: dict[str, Callable[[Queue], object]] = {
    "key must be the name of a parameter": lambda q: q.job(key=5),  # type: ignore[call-overload]
    "at_once must be between 1 and": lambda q: q.job(key="a", at_once=0),
    "at_once must be 1, or left out": lambda q: q.job(key="a", at_once=2, ordered=True),
    "ordered must be True or False": lambda q: q.job(ordered="yes"),  # type: ignore[call-overload]
    "ordered=True needs key": lambda q: q.job(ordered=True),
    "at_once=3 needs key": lambda q: q.job(at_once=3),
    "at_once=2 needs key": lambda q: q.job(at_once=2, limit="api"),
    "the limit 'api' needs at_once or a rate": lambda q: q.limit("api"),
    "rate must be a Rate": lambda q: q.limit("api", rate=100),  # type: ignore[arg-type]
    "count in Rate": lambda _: Rate(0),
    "per in Rate": lambda _: Rate(1, per=timedelta(0)),
    "at least a millisecond": lambda _: Rate(1, per=timedelta(microseconds=5)),
    "no colon": lambda q: q.limit("a:b", at_once=1),
    "1 to 100 characters": lambda q: q.limit("", at_once=1),
}


@pytest.mark.parametrize("message", BAD)
async def test_a_bad_rule_is_refused_where_it_is_written(queue: Queue, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        BAD[message](queue)


async def test_a_key_that_is_no_parameter_is_refused(queue: Queue) -> None:
    with pytest.raises(BadInput, match=r"key='tennant' is no parameter of resize: its .* tenant"):

        @queue.job(key="tennant")
        async def resize(tenant: int) -> None: ...  # pyright: ignore[reportUnusedFunction]


@pytest.mark.parametrize(
    ("value", "message"),
    [("", "1 to 200"), ("x" * 10_000, "has 10000"), (1.5, "not 1.5"), ("a\nb", "control")],
)
async def test_a_bad_key_is_refused_before_anything_is_sent(
    queue: Queue, value: Any, message: str
) -> None:
    @queue.job(key="name")
    async def resize(name: str | float) -> None: ...

    with pytest.raises(BadInput, match=message):
        await resize.enqueue(name=value)
    with pytest.raises(BadInput, match=message):
        resize.options(key=value)


async def test_a_function_for_the_key_that_raises_refuses_the_job(queue: Queue) -> None:
    def broken(payload: Any) -> str:
        return payload["nothing"]

    @queue.job(key=broken)
    async def resize(n: int) -> None: ...

    with pytest.raises(BadInput, match="the function for the key of resize failed: KeyError"):
        await resize.enqueue(n=1)


async def test_the_same_limit_cannot_be_defined_in_two_ways(queue: Queue) -> None:
    queue.limit("api", at_once=3)
    queue.limit("api", at_once=3)
    with pytest.raises(BadInput, match="defined already"):
        queue.limit("api", at_once=4)


async def test_a_worker_registers_its_rules_and_says_what_has_changed(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    queue.limit("api", at_once=20, rate=Rate(100, per=timedelta(minutes=1), burst=10))

    @queue.job(key="n", at_once=3, limit="api")
    async def resize(n: int) -> None: ...

    with caplog.at_level(logging.INFO, "howdah.types"):
        for _ in range(2):
            async with queue.worker():
                pass
    changes = [r.getMessage() for r in caplog.records if "limits.changed" in r.getMessage()]
    assert len(changes) == 2
    (limit,) = await queue.store.fetch("select * from howdah.limits")
    assert (limit["at_once"], limit["rate"], limit["burst"]) == (20, 100, 10)
    assert limit["per"] == timedelta(minutes=1)
    (rule,) = await queue.store.fetch("select * from howdah.type_limits")
    assert (rule["job_type"], rule["at_once"], rule["limit_name"]) == ("resize", 3, "api")


async def test_a_worker_with_a_limit_that_nobody_defined_does_not_start(queue: Queue) -> None:
    queue.limit("openai", at_once=1)

    @queue.job(limit="openia")
    async def ask() -> None: ...

    with pytest.raises(BadInput, match=r"there is no limit named openia. There are: openai."):
        await queue.worker().start()
    assert await queue.store.fetchval("select count(*) from howdah.workers") == 0


class Meter:
    """Counts how many jobs run at once."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.ran: list[int] = []

    async def run(self, n: int) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.002)
        self.ran.append(n)
        self.now -= 1


@pytest.mark.parametrize("bulk", [True, False])
async def test_a_worker_runs_no_more_than_at_once(queue: Queue, bulk: bool) -> None:
    meter = Meter()

    @queue.job(key="key", at_once=3)
    async def resize(key: str, n: int) -> None:
        await meter.run(n)

    async with queue.worker() as worker:
        payloads = [{"key": "a", "n": n} for n in range(30)]
        if bulk:
            await resize.enqueue_many(payloads)
        else:
            for payload in payloads:
                await resize.enqueue(**payload)  # type: ignore[arg-type]
        await eventually(lambda: len(meter.ran) == 30, "all have run")
        assert worker.free_slots > 0
    assert meter.most == 3


async def test_two_workers_run_ordered_jobs_in_order(queue: Queue) -> None:
    meter = Meter()

    @queue.job(key="key", ordered=True)
    async def book(key: str, n: int) -> None:
        await meter.run(n)

    async with queue.worker(), queue.worker():
        for n in range(20):
            await book.enqueue(key="a", n=n)
        await eventually(lambda: len(meter.ran) == 20, "all have run")
    assert meter.ran == list(range(20))
    assert meter.most == 1


async def test_jobs_that_wait_are_admitted_although_every_worker_is_busy(queue: Queue) -> None:
    """A busy worker looks at requests, too."""
    stop = asyncio.Event()
    keyed: list[int] = []

    @queue.job
    async def busy() -> None:
        if not stop.is_set():
            await busy.enqueue()

    @queue.job(key="key")
    async def book(key: str, n: int) -> None:
        keyed.append(n)

    async with queue.worker():
        for _ in range(20):
            await busy.enqueue()
        for n in range(10):
            await book.enqueue(key="a", n=n)
        await eventually(lambda: len(keyed) == 10, "all have run")
        stop.set()


async def test_a_limit_that_is_raised_by_hand_is_effective_at_once(queue: Queue) -> None:
    running: set[int] = set()
    stop = asyncio.Event()
    queue.limit("api", at_once=1)

    @queue.job(limit="api")
    async def call(n: int) -> None:
        running.add(n)
        await stop.wait()

    async with queue.worker():
        await call.enqueue_many([{"n": n} for n in range(5)])
        await eventually(lambda: len(running) == 1, "one runs")
        await queue.store.fetchval("select howdah.set_limit('api', 4)")
        await eventually(lambda: len(running) == 4, "four run")
        stop.set()


async def test_a_rate_is_kept_by_a_worker(queue: Queue) -> None:
    queue.limit("api", rate=Rate(200, burst=5))
    loop = asyncio.get_running_loop()
    started: list[float] = []

    @queue.job(limit="api")
    async def call(n: int) -> None:
        started.append(loop.time())

    async with queue.worker():
        await call.enqueue_many([{"n": n} for n in range(60)])
        await eventually(lambda: len(started) == 60, "all have started")
    # by the clock of the server; the client may see two starts closer by its own delays
    assert started[-1] - started[0] >= 0.5 * 55 / 200
