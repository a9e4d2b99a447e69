"""A worker settles anything that a handler reports, raises, returns or decides, and continues.

Real workers, in each run mode. A script tells the handler what to do, so a child process can do the
same.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from howdah import Queue, State
from howdah.handler import Run
from tests.fuzz.budget import examples
from tests.fuzz.test_child_messages import ended
from tests.fuzz.test_payload import World, numbers, texts, values, world
from tests.run import hostile_jobs
from tests.run.test_hostile_handlers import SLOTS, works_on
from tests.support.waiting import eventually

__all__ = ["world"]  # the fixture

anything = values | texts | numbers
reports = st.tuples(numbers | st.none() | anything, texts | anything, texts | anything, anything)
endings = (
    st.tuples(st.just("return"), texts, anything, st.booleans())
    | st.tuples(
        st.just("decide"),
        st.sampled_from(sorted(hostile_jobs.OUTCOMES)),
        anything,
        numbers | st.none() | anything,
    )
    | st.tuples(
        st.just("raise"),
        st.sampled_from(sorted(hostile_jobs.KINDS)),
        anything,
        st.none() | anything,
    )
)
scripts = st.fixed_dictionaries(
    {"reports": st.lists(reports, max_size=2), "end": endings, "raised": st.booleans()}
)


def script(*end: object, raised: bool = True) -> dict[str, Any]:
    return {"reports": [], "end": end, "raised": raised}


@pytest.mark.parametrize("run", ["async", "thread", "process"])
@given(given=st.lists(scripts, min_size=1, max_size=8))
@example(
    given=[
        *(script("raise", kind, "\0\ud800", 7) for kind in sorted(hostile_jobs.KINDS)),
        *(script("decide", outcome, {"a": 1}, "x") for outcome in sorted(hostile_jobs.OUTCOMES)),
        *(script("decide", outcome, None, 1e308) for outcome in sorted(hostile_jobs.OUTCOMES)),
        *(script("return", text, None, True) for text in ("", "1e400000", '"\\ud800"', "[[", "1")),
    ]
)
@examples(12)
def test_a_worker_survives_any_end_of_an_attempt(
    world: World, run: Run, given: list[dict[str, Any]]
) -> None:
    async def work() -> None:
        async with Queue(world.queue.store.shown_dsn) as queue:
            await run_and_check(hostile_jobs.register(queue, run), given)

    world.run(work())


async def run_and_check(queue: Queue, given: list[dict[str, Any]]) -> None:
    hostile = [
        await queue.enqueue("improvise", {"script": json.dumps(script)}, max_attempts=1)
        for script in given
    ]
    innocent = [await queue.enqueue("innocent", {"n": n}) for n in range(3)]
    async with asyncio.timeout(60), queue.worker(concurrency=SLOTS, processes=1) as worker:
        assert [await handle.result(timeout=30) for handle in innocent] == [0, 1, 2]
        for handle, steps in zip(hostile, given, strict=True):
            if tuple(steps["end"][:2]) == ("decide", "Snooze"):
                await handle.cancel()  # a snooze of no time comes back at once, again and again
        await eventually(lambda: ended(hostile), "every hostile job has ended")
        await works_on(queue, worker)
    for handle in hostile:
        job = await handle.job()
        assert job.status is not State.FAILED or job.last_error
        await handle.cancel()  # it may have snoozed or wait for a retry
