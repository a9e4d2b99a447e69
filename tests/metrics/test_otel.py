"""Spans of enqueue and run form one trace across processes, stored beside the payload."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import asyncpg
import psycopg
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

from howdah import Draft, Fail, Queue, Retry, SyncQueue
from howdah.metrics.otel import trace

pytestmark = pytest.mark.slow


class SpanRecorder:
    """A tracer provider, and its finished spans."""

    def __init__(self, **options: Any) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(**options)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans() if span.name == name]

    def only(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span

    def spans(self) -> Sequence[ReadableSpan]:
        return self._exporter.get_finished_spans()


@pytest.fixture
def recorder() -> SpanRecorder:
    return SpanRecorder()


def is_child(child: ReadableSpan, parent: ReadableSpan) -> bool:
    assert child.context is not None
    assert parent.context is not None
    return (
        child.parent is not None
        and child.parent.span_id == parent.context.span_id
        and child.context.trace_id == parent.context.trace_id
    )


async def test_a_run_is_a_child_of_its_enqueue_in_another_process(
    dsn: str, recorder: SpanRecorder
) -> None:
    worker_recorder = SpanRecorder()
    tracer = recorder.provider.get_tracer("web")
    worker_tracer = worker_recorder.provider.get_tracer("app")
    async with trace(Queue(dsn), recorder.provider) as producer:
        with tracer.start_as_current_span("request"):
            handle = await producer.enqueue("work", {"n": 1})
    async with trace(Queue(dsn), worker_recorder.provider) as consumer:

        @consumer.job
        async def work(n: int) -> None:
            with worker_tracer.start_as_current_span("inside"):
                await asyncio.sleep(0)

        async with consumer.worker():
            await consumer.handle(handle.id).result(timeout=20)
    enqueue, run = recorder.only("enqueue work"), worker_recorder.only("run work")
    assert is_child(enqueue, recorder.only("request"))
    assert is_child(run, enqueue)
    assert is_child(worker_recorder.only("inside"), run)
    assert (enqueue.kind, run.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert run.attributes is not None
    assert run.attributes["messaging.message.id"] == str(handle.id)
    assert (run.attributes["howdah.attempt"], run.attributes["howdah.outcome"]) == (1, "complete")
    assert run.status.status_code is StatusCode.UNSET


async def test_a_handler_in_a_thread_runs_inside_its_span(dsn: str, recorder: SpanRecorder) -> None:
    tracer = recorder.provider.get_tracer("app")
    async with trace(Queue(dsn), recorder.provider) as queue:

        @queue.job
        def work() -> None:
            with tracer.start_as_current_span("inside"):
                pass

        async with queue.worker():
            await (await work.enqueue()).result(timeout=20)
    assert is_child(recorder.only("inside"), recorder.only("run work"))


async def test_every_attempt_has_a_span_and_a_failed_attempt_has_its_error(
    dsn: str, recorder: SpanRecorder
) -> None:
    async with trace(Queue(dsn), recorder.provider) as queue:

        @queue.job(max_attempts=3)
        async def work(n: int) -> None:
            attempts = len(recorder.named("run work"))
            raise Fail("never") if attempts else Retry("not yet", after=0)

        async with queue.worker():
            handle = await work.enqueue(n=1)
            with pytest.raises(Exception, match="never"):
                await handle.result(timeout=20)
    first, second = recorder.named("run work")
    assert is_child(first, recorder.only("enqueue work"))
    assert is_child(second, recorder.only("enqueue work"))
    assert [span.status.status_code for span in (first, second)] == [StatusCode.ERROR] * 2
    assert [span.status.description for span in (first, second)] == ["not yet", "never"]


async def test_a_cancelled_attempt_has_the_outcome_lost(dsn: str, recorder: SpanRecorder) -> None:
    async with trace(Queue(dsn), recorder.provider) as queue:
        began = asyncio.Event()

        @queue.job
        async def work() -> None:
            began.set()
            await asyncio.sleep(60)

        async with queue.worker():
            handle = await work.enqueue()
            await asyncio.wait_for(began.wait(), 20)
            await handle.cancel()
    run = recorder.only("run work")
    assert run.attributes is not None
    assert run.attributes["howdah.outcome"] == "lost"


async def stream_of_drafts(n: int, queue: Queue) -> AsyncGenerator[Draft]:
    for i in range(n):
        yield queue.draft("work", {"n": i})


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_stream_has_one_span_which_is_the_parent_of_every_run(
    dsn: str, recorder: SpanRecorder, asynchronous: bool
) -> None:
    async with trace(Queue(dsn), recorder.provider) as queue:

        @queue.job
        async def work(n: int) -> None: ...

        drafts = stream_of_drafts(3, queue) if asynchronous else (work.draft(n=n) for n in range(3))
        assert await queue.enqueue_many(drafts) == 3
        async with queue.worker() as worker:
            await worker.run_until_idle()
    span = recorder.only("enqueue_many")
    assert span.attributes is not None
    assert span.attributes["messaging.batch.message_count"] == 3
    runs = recorder.named("run work")
    assert len(runs) == 3
    assert all(is_child(run, span) for run in runs)


async def test_the_context_is_part_of_the_callers_transaction(
    dsn: str, recorder: SpanRecorder
) -> None:
    async with trace(Queue(dsn), recorder.provider) as queue:
        connection = await asyncpg.connect(dsn)
        async with connection.transaction():
            await queue.enqueue("work", conn=connection)
            await queue.enqueue_many([queue.draft("work")], conn=connection)
        stored = await connection.fetch("select trace from howdah.jobs order by id")
        await connection.close()
    spans = [recorder.only("enqueue work"), recorder.only("enqueue_many")]
    for row, span in zip(stored, spans, strict=True):
        assert span.context is not None
        assert row[0].startswith(f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-")


def test_a_sync_queue_is_traced_also_inside_a_transaction(dsn: str, recorder: SpanRecorder) -> None:
    tracer = recorder.provider.get_tracer("web")
    with trace(SyncQueue(dsn), recorder.provider) as queue, psycopg.connect(dsn) as connection:
        with tracer.start_as_current_span("request"):
            queue.enqueue("work")
            queue.enqueue("work", conn=connection)
        connection.commit()
        rows = connection.execute("select trace from howdah.jobs").fetchall()
    first, second = recorder.named("enqueue work")
    assert is_child(first, recorder.only("request"))
    assert is_child(second, recorder.only("request"))
    assert all(row[0] is not None for row in rows)
    assert len(rows) == 2


async def test_the_payload_is_unchanged_and_only_sampled_traces_are_stored(
    queue: Queue, recorder: SpanRecorder
) -> None:
    await queue.enqueue("work", {"n": 1})
    await queue.enqueue_many([queue.draft("work", {"n": 2})])
    unsampled = SpanRecorder(sampler=ALWAYS_OFF)
    trace(queue, unsampled.provider)
    await queue.enqueue("work", {"n": 3})
    trace(queue, recorder.provider)
    await queue.enqueue("work", {"n": 4})
    rows = await queue.store.fetch("select data::text, trace is null from howdah.jobs order by id")
    assert [tuple(row) for row in rows] == [
        ('{"n": 1}', True),
        ('{"n": 2}', True),
        ('{"n": 3}', True),
        ('{"n": 4}', False),
    ]


async def test_a_job_with_an_invalid_context_begins_its_own_trace(
    dsn: str, recorder: SpanRecorder
) -> None:
    async with trace(Queue(dsn), recorder.provider) as queue:

        @queue.job
        async def work() -> None: ...

        await queue.store.fetch(
            "insert into howdah.jobs (job_type, trace) values ('work', 'nonsense'), ('work', null)"
        )
        async with queue.worker() as worker:
            await worker.run_until_idle()
    runs = recorder.named("run work")
    assert len(runs) == 2
    assert all(run.parent is None for run in runs)


async def test_a_requeued_job_stays_in_its_trace(dsn: str, recorder: SpanRecorder) -> None:
    async with trace(Queue(dsn), recorder.provider) as queue:
        outcomes = iter([Fail("first"), None])

        @queue.job
        async def work() -> None:
            if (outcome := next(outcomes)) is not None:
                raise outcome

        async with queue.worker() as worker:
            handle = await work.enqueue()
            await worker.run_until_idle()
            await queue.requeue([handle.id])
            await handle.result(timeout=20)
    runs = recorder.named("run work")
    assert len(runs) == 2
    assert all(is_child(run, recorder.only("enqueue work")) for run in runs)
