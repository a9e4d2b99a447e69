"""Payloads and options of every kind: a BadInput before anything is sent, or back exactly.

Whatever Python can hold goes in: huge numbers, NaN, half surrogate pairs, NUL, deep nesting, keys
that are not text. What is taken comes back equal through the database and in the handler's hands.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine, Generator
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, TypeVar, cast
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from howdah import BadInput, JobContext, Queue
from howdah.states import State
from tests.fuzz.budget import examples
from tests.support.databases import Databases

T = TypeVar("T")

numbers = (
    st.integers()
    | st.sampled_from([2**31, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**400, -(10**1000)])
    | st.floats()
    | st.sampled_from([1e22, 1e308, 5e-324, -0.0, 1e16])
)
# any code point at all: NUL, control characters, halves of surrogate pairs
texts = st.text(st.characters(exclude_categories=()), max_size=20)
leaves = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(texts, inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.integers() | texts, inner, max_size=3)
    ),
    max_leaves=20,
)


def nested(depth: int, within: Any = None) -> Any:
    for _ in range(depth):
        within = [within]
    return within


class World:
    """A queue, and the loop it lives in."""

    def __init__(self, dsn: str) -> None:
        self.loop = asyncio.Runner()
        self.queue = Queue(dsn)
        self.seen: dict[UUID, Any] = {}

        @self.queue.job
        async def echo(ctx: JobContext, value: Any) -> Any:
            self.seen[ctx.id] = value
            return value

        self.echo = echo

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run(work)


@pytest.fixture(scope="module")
def world(databases: Databases) -> Generator[World]:
    dsn = databases.create()
    made = World(dsn)
    yield made
    made.run(made.queue.close())
    made.loop.close()
    databases.drop(dsn)


def as_json(value: Any) -> Any:
    """What JSON makes of a value: lists for tuples, text for the keys of objects."""
    if isinstance(value, list | tuple):
        return [as_json(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in cast("dict[Any, Any]", value).items()}
    return value


def same(before: Any, after: Any) -> bool:
    """Whether a value came back: numbers to the last digit, and true is not 1."""
    if isinstance(before, dict) and isinstance(after, dict):
        one, other = cast("dict[str, Any]", before), cast("dict[str, Any]", after)
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(before, list) and isinstance(after, list):
        items, others = cast("list[Any]", before), cast("list[Any]", after)
        return len(items) == len(others) and all(map(same, items, others))
    if isinstance(before, float) and type(after) in (int, float):
        # jsonb writes 1e22 out in full, so a whole float may come back as the int it is
        return before == float(after)
    return is_same_leaf(before, after)


def is_same_leaf(before: Any, after: Any) -> bool:
    return type(before) is type(after) and before == after


@given(st.lists(values, min_size=1, max_size=10))
@example([nested(30), nested(31), nested(32), nested(100)])
@example([{"a": {"b": [math.nan]}}, [math.inf], {"\0": 1}, {"\ud800": 1}, {"x": "\udfff"}, "\0"])
@example([{1: "a", "1": "b"}, {"a" * 300_000: 1}, "é" * 140_000])
@examples(25)
def test_what_is_taken_comes_back_and_what_is_not_is_refused(
    world: World, given: list[Any]
) -> None:
    async def there_and_back() -> None:
        taken: dict[UUID, Any] = {}
        for value in given:
            try:
                handle = await world.echo.enqueue(value)
            except BadInput:
                continue
            taken[handle.id] = as_json(value)
            assert same(taken[handle.id], (await handle.job()).data["value"]), value
        async with asyncio.timeout(20), world.queue.worker() as worker:
            await worker.run_until_idle()
        for id, value in taken.items():
            job = await world.queue.get(id)
            assert same(value, world.seen.pop(id))
            assert job.status is State.COMPLETED, job.last_error
            assert same(value, job.result)

    world.run(there_and_back())


@pytest.mark.parametrize("depth", [33, 500, 5_000, 100_000])
def test_nesting_beyond_any_measure_is_refused(world: World, depth: int) -> None:
    with pytest.raises(BadInput, match="nested"):
        world.run(world.echo.enqueue(nested(depth)))


instants = st.datetimes(timezones=st.none() | st.just(UTC)) | st.sampled_from(
    [
        *(datetime.max, datetime.min, datetime.max.replace(tzinfo=UTC)),
        *(datetime.min.replace(tzinfo=UTC), datetime(9998, 1, 1, tzinfo=UTC)),
        *(datetime(2, 1, 1, tzinfo=timezone(timedelta(hours=-23))), datetime(1, 1, 2, tzinfo=UTC)),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-23))),
    ]
)
lengths = (
    st.timedeltas()
    | st.floats()
    | st.integers()
    | st.sampled_from([timedelta.max, timedelta.min, 1e300, math.inf, math.nan, -0.0])
)
counts = st.integers() | st.sampled_from([0, 1, 2**31 - 1, 2**31, -(2**31), True, 1.5, "9", None])


@given(
    st.lists(
        st.fixed_dictionaries(
            {"job_type": texts.map(lambda name: name or "x")},
            optional={
                "run_at": instants,
                "delay": lengths,
                "priority": counts,
                "max_attempts": counts,
            },
        ),
        min_size=1,
        max_size=10,
    )
)
@example([{"job_type": "x", "run_at": datetime.max.replace(tzinfo=UTC)}])
@example([{"job_type": "x", "delay": timedelta.max}, {"job_type": "x", "delay": math.nan}])
@examples(40)
def test_options_are_refused_in_words_or_kept(world: World, given: list[dict[str, Any]]) -> None:
    async def hand_over() -> None:
        for options in given:
            try:
                draft = world.queue.draft(**options)
            except BadInput:
                continue
            most = draft.max_attempts or 0
            if most > 1000:  # which the database refuses: option max_attempts_limit
                for way in (world.queue.enqueue(**options), world.queue.enqueue_many([draft])):
                    with pytest.raises(BadInput, match="the limit is 1000"):
                        await way
                continue
            one = await world.queue.enqueue(**options)
            assert await world.queue.enqueue_many([draft]) == 1
            for id in (one.id, draft.id):
                job = await world.queue.get(id)
                assert job.job_type == options["job_type"]
                if options.get("run_at") is not None:
                    assert job.run_at == options["run_at"]

    world.run(hand_over())


@given(st.lists(st.tuples(numbers | st.none(), texts, texts, values), min_size=1, max_size=5))
@example([(5, "\ud800", "kind", None), (5, "stage", "\udfff", None), (math.nan, "\0", "\0", "\0")])
@examples(20)
def test_a_handler_can_report_anything_and_its_worker_lives(
    world: World, reports: list[tuple[Any, str, str, Any]]
) -> None:
    """A report is refused in the handler that makes it, never later in everybody's batch."""
    queue = Queue(world.queue.store._dsn)  # pyright: ignore[reportPrivateUsage]

    @queue.job(max_attempts=1)
    async def talk(ctx: JobContext, nth: int) -> int:
        percent, stage, kind, data = reports[nth]
        for say in (lambda: ctx.progress(percent, stage), lambda: ctx.emit(kind, data)):
            with suppress(BadInput):
                say()
        return nth

    async def work() -> None:
        async with queue:
            handles = [await talk.enqueue(nth=nth) for nth in range(len(reports))]
            async with asyncio.timeout(20), queue.worker() as worker:
                await worker.run_until_idle()
            for handle in handles:
                job = await handle.job()
                assert job.status is State.COMPLETED, job.last_error

    world.run(work())


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"worker_id": "a\0b"}, "worker_id is text"),
        ({"worker_id": "\ud800"}, "worker_id is text"),
        ({"worker_id": "x" * 201}, "worker_id is text"),
        ({"silent_after": timedelta.max}, "silent_after must be no longer than 365 days"),
        ({"poll": timedelta.max}, "poll must be no longer than 365 days"),
    ],
)
def test_a_worker_that_could_not_work_is_refused_before_it_starts(
    world: World, options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(BadInput, match=complaint):
        world.queue.worker(**options)
