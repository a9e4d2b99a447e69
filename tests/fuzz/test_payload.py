"""Payloads and options of every kind: BadInput before anything is sent, or an exact round trip.

The values are what Python can hold: huge numbers, NaN, lone surrogates, NUL, deep nesting, keys
that are not text. What is accepted comes back equal, from the database and in the handler.
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
# any code point: NUL, control characters, lone surrogates
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
    """A queue and its event loop."""

    def __init__(self, dsn: str) -> None:
        self.loop = asyncio.Runner()
        self.queue = Queue(dsn)
        self.received: dict[UUID, Any] = {}

        @self.queue.job
        async def echo(ctx: JobContext, value: Any) -> Any:
            self.received[ctx.id] = value
            return value

        self.echo = echo

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run(work)


@pytest.fixture(scope="module")
def world(databases: Databases) -> Generator[World]:
    dsn = databases.create()
    created = World(dsn)
    yield created
    created.run(created.queue.close())
    created.loop.close()
    databases.drop(dsn)


def as_json(value: Any) -> Any:
    """Return a value as JSON stores it: lists for tuples, strings as keys."""
    if isinstance(value, list | tuple):
        return [as_json(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in cast("dict[Any, Any]", value).items()}
    return value


def same(before: Any, after: Any) -> bool:
    """Whether two values are equal: numbers to the last digit, and true is not 1."""
    if isinstance(before, dict) and isinstance(after, dict):
        sent, received = cast("dict[str, Any]", before), cast("dict[str, Any]", after)
        return sent.keys() == received.keys() and all(
            same(sent[key], received[key]) for key in sent
        )
    if isinstance(before, list) and isinstance(after, list):
        items, others = cast("list[Any]", before), cast("list[Any]", after)
        return len(items) == len(others) and all(map(same, items, others))
    if isinstance(before, float) and type(after) in (int, float):
        # jsonb writes 1e22 in full, so a whole float may come back as an int
        return before == float(after)
    return is_same_leaf(before, after)


def is_same_leaf(before: Any, after: Any) -> bool:
    return type(before) is type(after) and before == after


@given(st.lists(values, min_size=1, max_size=10))
@example([nested(30), nested(31), nested(32), nested(100)])
@example([{"a": {"b": [math.nan]}}, [math.inf], {"\0": 1}, {"\ud800": 1}, {"x": "\udfff"}, "\0"])
@example([{1: "a", "1": "b"}, {"a" * 300_000: 1}, "é" * 140_000])
@examples(25)
def test_a_payload_is_stored_exactly_or_refused(world: World, given: list[Any]) -> None:
    async def round_trip() -> None:
        accepted: dict[UUID, Any] = {}
        for value in given:
            try:
                handle = await world.echo.enqueue(value)
            except BadInput:
                continue
            accepted[handle.id] = as_json(value)
            assert same(accepted[handle.id], (await handle.job()).data["value"]), value
        async with asyncio.timeout(20), world.queue.worker() as worker:
            await worker.run_until_idle()
        for id, value in accepted.items():
            job = await world.queue.get(id)
            assert same(value, world.received.pop(id))
            assert job.status is State.COMPLETED, job.last_error
            assert same(value, job.result)

    world.run(round_trip())


@pytest.mark.parametrize("depth", [33, 500, 5_000, 100_000])
def test_very_deep_nesting_is_refused(world: World, depth: int) -> None:
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
def test_options_are_refused_with_a_message_or_stored(
    world: World, given: list[dict[str, Any]]
) -> None:
    async def enqueue_all() -> None:
        for options in given:
            try:
                draft = world.queue.draft(**options)
            except BadInput:
                continue
            most = draft.max_attempts or 0
            if most > 1000:  # the database refuses this: option max_attempts_limit
                for call in (world.queue.enqueue(**options), world.queue.enqueue_many([draft])):
                    with pytest.raises(BadInput, match="the limit is 1000"):
                        await call
                continue
            handle = await world.queue.enqueue(**options)
            assert await world.queue.enqueue_many([draft]) == 1
            for id in (handle.id, draft.id):
                job = await world.queue.get(id)
                assert job.job_type == options["job_type"]
                if options.get("run_at") is not None:
                    assert job.run_at == options["run_at"]

    world.run(enqueue_all())


@given(st.lists(st.tuples(numbers | st.none(), texts, texts, values), min_size=1, max_size=5))
@example([(5, "\ud800", "kind", None), (5, "stage", "\udfff", None), (math.nan, "\0", "\0", "\0")])
@examples(20)
def test_a_worker_survives_any_report_of_a_handler(
    world: World, reports: list[tuple[Any, str, str, Any]]
) -> None:
    """An invalid report is refused in its handler, not later in the batch of all reports."""
    queue = Queue(world.queue.store._dsn)  # pyright: ignore[reportPrivateUsage]

    @queue.job(max_attempts=1)
    async def send_reports(ctx: JobContext, nth: int) -> int:
        percent, stage, kind, data = reports[nth]
        for report in (lambda: ctx.progress(percent, stage), lambda: ctx.emit(kind, data)):
            with suppress(BadInput):
                report()
        return nth

    async def work() -> None:
        async with queue:
            handles = [await send_reports.enqueue(nth=nth) for nth in range(len(reports))]
            async with asyncio.timeout(20), queue.worker() as worker:
                await worker.run_until_idle()
            for handle in handles:
                job = await handle.job()
                assert job.status is State.COMPLETED, job.last_error

    world.run(work())


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"worker_id": "a\0b"}, "worker_id must be text"),
        ({"worker_id": "\ud800"}, "worker_id must be text"),
        ({"worker_id": "x" * 201}, "worker_id must be text"),
        ({"silent_after": timedelta.max}, "silent_after must be no longer than 365 days"),
        ({"poll": timedelta.max}, "poll must be no longer than 365 days"),
    ],
)
def test_invalid_options_of_a_worker_are_refused_before_it_starts(
    world: World, options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(BadInput, match=complaint):
        world.queue.worker(**options)
