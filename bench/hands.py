"""Hands: the processes that do and hand over the work of bad days, memory and growth.

Started by yard.py as `python -m bench.hands VERB ARGUMENTS`, with the protocol of driver.py.

    work       handle jobs until killed
    produce    hand jobs over at a steady rate, or as fast as they are handled
    send       hand single jobs over with pauses, beside idle waits if `waits` says so
    hand_over  hand jobs over with enqueue_many, timed, in lots of `lot`

Claims are timed here, around the one call that goes to the database: what a worker really waits.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import uvloop

from bench.driver import Task, drive, payload, say
from bench.lots import (
    MIXED,
    NOBODYS,
    NOOP,
    PICKUP,
    WAITING,
    WARM_UP,
    drafts,
)
from bench.resident import peak_kib, resident_kib
from bench.tally import ADDRESS, FOLDER, Reader, Tally
from howdah import Backoff, Cancel, JobContext, Queue
from howdah.job import Claim
from howdah.store import claim as store_claim

LOT = 0.05  # seconds between two lots of a producer
PATIENCE = 60.0
PAUSES = (0.003, 0.009)  # seconds between the jobs of a pickup measurement

queue = Queue(os.environ[ADDRESS])
_tally = Tally(os.environ[FOLDER])


async def noop(number: int, rest: str) -> None:
    _tally.handled(number)


@queue.job(name=WAITING)
async def waiting(number: int, rest: str) -> None:
    _tally.handled(number)
    await asyncio.sleep(0.01)


@queue.job(name=PICKUP)
async def pickup(number: int, rest: str) -> None:
    _tally.picked_up(number)


@queue.job(name=WARM_UP)
async def warm_up(number: int, rest: str) -> None:
    """Run once before the word is given, so that connections and plans are there."""


@queue.job(name=MIXED, backoff=Backoff(first=timedelta(milliseconds=100)))
async def mixed(ctx: JobContext, number: int, rest: str) -> None:
    """Of a hundred jobs, five fail once, ten report ten times, one is cancelled."""
    kind = number % 100
    if kind < 5 and ctx.attempt == 1:
        raise RuntimeError("the first attempt goes wrong")
    _tally.handled(number)
    if 5 <= kind < 15:
        for step in range(10):
            await ctx.progress(step * 10, f"step {step}")
    elif kind == 15:
        raise Cancel("nobody needs it")


async def work(task: Task) -> None:
    say(pid=os.getpid())
    names: list[str] = task.options.get("names", [NOOP])
    for name in names:
        if name not in queue.handlers:
            queue.job(name=name)(noop)
    settings = {
        name: task.options[name] for name in ("concurrency", "batch_size") if name in task.options
    }
    if jobs := task.options.get("warm_up", 0):
        await queue.enqueue_many(drafts(queue, [WARM_UP], range(jobs)))
        async with queue.worker(job_types=[WARM_UP], **settings) as worker:
            await worker.run_until_idle()
    await queue.workers()  # connects
    if task.options.get("claims"):
        time_claims(Path(os.environ[FOLDER]) / f"{os.getpid()}.claims")
    task.go()
    await queue.worker(job_types=names, **settings).run()


def time_claims(path: Path) -> None:
    """Note of every claim when it began, how long it took and how many jobs it brought."""
    file = path.open("ab", buffering=0)

    def timed(claim: Callable[..., Awaitable[list[Claim]]]) -> Callable[..., object]:
        async def noted(*arguments: object) -> list[Claim]:
            began = time.monotonic_ns()
            claims = await claim(*arguments)
            numbers = (began, time.monotonic_ns() - began, len(claims))
            file.write(b"".join(number.to_bytes(8, "little") for number in numbers))
            return claims

        return noted

    store_claim.claim = timed(store_claim.claim)  # pyright: ignore[reportAttributeAccessIssue]
    store_claim.claim_next = timed(store_claim.claim_next)  # pyright: ignore[reportAttributeAccessIssue]


async def produce(task: Task) -> None:
    """Keep to the rate whatever happens: what comes late comes in a larger lot."""
    seconds = float(task.options["seconds"])
    rate, ahead = float(task.options.get("rate", 0)), int(task.options.get("ahead", 0))
    handled = Reader(Path(os.environ[FOLDER]))
    await queue.workers()
    task.go()
    began = time.monotonic()
    sent = 0
    while (passed := time.monotonic() - began) < seconds:
        due = int(passed * rate) - sent if rate else ahead - (sent - handled.count().calls)
        if due > 0:
            await queue.enqueue_many(drafts(queue, [NOOP], range(sent, sent + due)))
            sent += due
        await asyncio.sleep(max(0.0, passed + LOT - (time.monotonic() - began)) if rate else 0.005)
    say(produced=sent)


async def send(task: Task) -> None:
    waiting = await wait_for_nothing(task.options.get("waits", 0))
    task.go()
    for _ in range(task.jobs):
        await asyncio.sleep(random.uniform(*PAUSES))
        await pickup.enqueue(**payload(time.monotonic_ns()))
    say(sent=True)
    for wait in waiting:
        wait.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def wait_for_nothing(waits: int) -> list[asyncio.Task[object]]:
    """Open waits for jobs that nobody does, and say what they cost in memory."""
    made = list(drafts(queue, [NOBODYS], range(waits + 1)))
    ids = [draft.id for draft in made]
    await queue.enqueue_many(made)
    del made
    waiting = [await _open_waits(ids[:1], 1)]  # what the first one costs is paid only once
    gc.collect()
    before = resident_kib()
    waiting.append(await _open_waits(ids[1:], waits + 1))
    gc.collect()
    say(kib=resident_kib() - before)
    return [wait for some in waiting for wait in some]


async def _open_waits(ids: list[UUID], watched: int) -> list[asyncio.Task[object]]:
    waits = [asyncio.create_task(queue.handle(id).result()) for id in ids]
    async with asyncio.timeout(PATIENCE):
        while await queue.store.fetchval(COUNT_WATCHED) < watched:  # noqa: ASYNC110 - of others
            await asyncio.sleep(0.05)
    return waits


COUNT_WATCHED = "select count(*) from howdah.jobs_live where watched"


async def hand_over(task: Task) -> None:
    """Hand jobs over from a generator, and say the largest size this process ever had."""
    lot = task.options.get("lot", task.jobs)
    await queue.workers()
    with task.timed():
        for first in range(0, task.jobs, lot):
            numbers = range(first, min(first + lot, task.jobs))
            await queue.enqueue_many(drafts(queue, [NOOP], numbers))
    say(peak_kib=peak_kib())


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        drive(work, produce, send, hand_over, runner=uvloop.run)
