"""Hooks are called when attempts begin and end, and no error in a hook affects a job."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

import pytest

from howdah import (
    AttemptEnd,
    AttemptStart,
    Backoff,
    BadInput,
    Cancel,
    Fail,
    JobContext,
    Queue,
    Retry,
    Snooze,
    State,
)
from howdah.client.sync import SyncQueue
from howdah.job import Claim
from howdah.outcomes import Ending
from howdah.run import hooks
from tests.run import process_jobs
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

SOON = Backoff(first=timedelta())
GUIDE = Path(__file__).parents[2] / "docs/guides/metrics.md"


class HookCalls:
    """Records the calls of the hooks of a queue."""

    def __init__(self, queue: Queue) -> None:
        self.all: list[tuple[str, AttemptStart]] = []
        queue.on_start(self._record("start"))
        queue.on_end(self._record("end"))
        queue.on_retry(self._record("retry"))
        queue.on_failure(self._record("failure"))

    def _record(self, when: str) -> Callable[[AttemptStart], None]:
        return lambda attempt: self.all.append((when, attempt))

    @property
    def order(self) -> list[tuple[str, int]]:
        return [(when, attempt.attempt) for when, attempt in self.all]

    def on(self, when: str) -> list[AttemptEnd]:
        return [a for w, a in self.all if w == when and isinstance(a, AttemptEnd)]


async def run_worker(queue: Queue, **options: Any) -> None:
    async with queue.worker(**options) as worker:
        await worker.run_until_idle()


async def test_a_completed_job_calls_two_hooks(queue: Queue) -> None:
    hook_calls = HookCalls(queue)

    @queue.job(max_attempts=5, priority=7)
    async def double(n: int) -> int:
        return n * 2

    handle = await double.enqueue(n=21)
    await run_worker(queue)
    assert hook_calls.order == [("start", 1), ("end", 1)]
    started, (ended,) = hook_calls.all[0][1], hook_calls.on("end")
    for value in (started, ended):
        assert (value.id, value.job_type, value.payload) == (handle.id, "double", {"n": 21})
        assert (value.max_attempts, value.priority) == (5, 7)
    assert (ended.outcome, ended.reason, ended.exception) == ("completed", None, None)
    assert ended.seconds >= 0


@pytest.mark.parametrize("run", ["async", "thread", "timed thread"])
async def test_hooks_of_retries_and_failures_get_the_exception(queue: Queue, run: str) -> None:
    hook_calls = HookCalls(queue)
    raised: list[LookupError] = []

    def fail() -> None:
        raised.append(LookupError("not there"))
        raise raised[-1]

    async def fails() -> None:
        fail()

    options: dict[str, Any] = {"name": "fails", "max_attempts": 2, "backoff": SOON}
    if run == "async":
        queue.job(**options)(fails)
    else:
        queue.job(**options, timeout=30 if run == "timed thread" else None)(fail)
    await queue.enqueue("fails")
    await run_worker(queue)
    assert hook_calls.order == [
        *(("start", 1), ("end", 1), ("retry", 1)),
        *(("start", 2), ("end", 2), ("failure", 2)),
    ]
    for when, outcome, attempt in (("retry", "retried", 0), ("failure", "failed", 1)):
        (call,) = hook_calls.on(when)
        assert (call.outcome, call.reason) == (outcome, "LookupError: not there")
        assert call.exception is raised[attempt]
        assert call.traceback is not None
        assert "in fail\n" in call.traceback
    assert hook_calls.on("retry")[0].retry_in is not None
    assert hook_calls.on("failure")[0].retry_in is None


async def test_a_process_sends_its_traceback_and_no_exception(dsn: str) -> None:
    async with process_jobs.queue_at(dsn) as queue:
        hook_calls = HookCalls(queue)
        await queue.enqueue("raises", max_attempts=1)
        await run_worker(queue)
    assert hook_calls.order == [("start", 1), ("end", 1), ("failure", 1)]
    (call,) = hook_calls.on("failure")
    assert call.exception is None
    assert call.traceback is not None
    assert "Traceback" in call.traceback


@pytest.mark.parametrize(
    ("decision", "outcome", "hook_names"),
    [
        (Cancel("not wanted"), "cancelled", []),
        (Fail("hopeless"), "failed", ["failure"]),
        (Retry("again", after=3600), "retried", ["retry"]),
        (Snooze(3600, "later"), "snoozed", []),
    ],
)
async def test_hooks_get_the_outcome_that_a_handler_decides(
    queue: Queue, decision: Exception, outcome: str, hook_names: list[str]
) -> None:
    hook_calls = HookCalls(queue)

    @queue.job
    async def decides() -> None:
        raise decision

    await decides.enqueue()
    await run_worker(queue)
    assert [when for when, _ in hook_calls.all] == ["start", "end", *hook_names]
    (ended,) = hook_calls.on("end")
    assert ended.outcome == outcome
    assert ended.reason


async def test_a_lost_attempt_calls_no_failure_hook(queue: Queue) -> None:
    hook_calls = HookCalls(queue)
    began = asyncio.Event()

    @queue.job
    async def long(ctx: JobContext) -> None:
        began.set()
        try:
            await asyncio.sleep(3600)
        finally:
            raise LookupError("cut short")

    handle = await long.enqueue()
    async with queue.worker() as worker:
        await began.wait()
        await handle.cancel()
        await eventually(lambda: ("end", 1) in hook_calls.order)
        await worker.run_until_idle()
    assert hook_calls.order == [("start", 1), ("end", 1)]
    assert hook_calls.on("end")[0].outcome == "lost"


async def test_a_worker_that_stops_calls_hooks_for_released_jobs(queue: Queue) -> None:
    hook_calls = HookCalls(queue)
    began = asyncio.Event()

    @queue.job
    async def long() -> None:
        began.set()
        await asyncio.sleep(3600)

    await long.enqueue()
    async with queue.worker(grace=timedelta()):
        await began.wait()
    assert hook_calls.order == [("start", 1), ("end", 1)]
    assert hook_calls.on("end")[0].outcome == "released"


def hook_errors(caplog: pytest.LogCaptureFixture, name: str) -> list[str]:
    """Return the logged errors of a hook."""
    lines = [record.getMessage() for record in caplog.records]
    matches = [re.match(rf"hook.failed hook=\S+\.{name} on=.* error=(.*)", line) for line in lines]
    return [match[1] for match in matches if match is not None]


async def test_no_hook_can_harm_a_job_or_another_hook(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    @queue.on_start
    def raises(attempt: AttemptStart) -> None:
        raise LookupError(f"in a hook of {attempt.job_type}")

    @queue.on_start
    async def raises_async(attempt: AttemptStart) -> None:
        raise LookupError("in an async hook")

    @queue.on_end
    def exits(attempt: AttemptEnd) -> None:
        sys.exit(3)

    @queue.on_end
    async def exits_async(attempt: AttemptEnd) -> None:
        sys.exit(4)

    @queue.on_end
    async def interrupted(attempt: AttemptEnd) -> None:
        raise KeyboardInterrupt

    @queue.on_end
    async def cancels(attempt: AttemptEnd) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(3600)

    def returns_coroutine(attempt: AttemptEnd) -> Any:
        return exits_async(attempt)

    queue.on_end(returns_coroutine)
    hook_calls = HookCalls(queue)

    @queue.job
    async def fine(n: int) -> int:
        return n

    handles = [await fine.enqueue(n=n) for n in range(4)]
    await run_worker(queue, concurrency=2)
    assert [(await handle.job()).status for handle in handles] == [State.COMPLETED] * 4
    assert len(hook_calls.on("end")) == 4
    for name, error in (
        ("raises", "LookupError: in a hook of fine"),
        ("raises_async", "LookupError: in an async hook"),
        ("exits", "SystemExit: 3"),
        ("exits_async", "SystemExit: 4"),
        ("interrupted", "KeyboardInterrupt"),
        ("cancels", "CancelledError"),
        ("returns_coroutine", "BadInput: it is a plain function that returned a coroutine: write"),
    ):
        errors = hook_errors(caplog, name)
        assert len(errors) == 4, name
        assert all(line.startswith(error) for line in errors), errors
    raising = [r for r in caplog.records if ".raises on=start" in r.getMessage()]
    assert "in raises\n" in str(raising[0].exc_text)


async def test_a_hook_that_hangs_is_given_up(
    queue: Queue, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "HOOK_TIMEOUT", 0.2)
    may_end = threading.Event()

    @queue.on_end
    def hangs(attempt: AttemptEnd) -> None:
        may_end.wait(60)

    @queue.on_end
    async def hangs_async(attempt: AttemptEnd) -> None:
        await asyncio.sleep(3600)

    @queue.job
    async def fine() -> None: ...

    handles = [await fine.enqueue() for _ in range(4)]
    await run_worker(queue, concurrency=2)
    may_end.set()
    assert [(await handle.job()).status for handle in handles] == [State.COMPLETED] * 4
    for name in ("hangs", "hangs_async"):
        assert hook_errors(caplog, name) == ["TimeoutError: it took longer than 0.2 s"] * 4


async def test_a_plain_hook_that_blocks_does_not_block_the_loop(queue: Queue) -> None:
    done = threading.Event()
    waited: list[bool] = []

    @queue.on_start
    def waits(attempt: AttemptStart) -> None:
        waited.append(done.wait(30))

    @queue.job
    async def sets_done() -> None:
        done.set()

    await sets_done.enqueue()
    await run_worker(queue)
    assert waited == [True]


async def test_calls_of_slow_hooks_are_dropped_above_a_limit(
    queue: Queue, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "MAX_WAITING", 20)
    may_end = threading.Event()
    calls: list[int] = []

    @queue.on_end
    def slow(attempt: AttemptEnd) -> None:
        may_end.wait(60)
        calls.append(1)

    @queue.job
    async def quick() -> None: ...

    await quick.enqueue_many(quick.draft() for _ in range(100))
    async with queue.worker():
        await eventually(lambda: any("hook.dropped" in r.getMessage() for r in caplog.records))
        may_end.set()
        await eventually(lambda: len(calls) == 20)
    jobs = await queue.counts()
    assert jobs["quick"][State.COMPLETED] == 100


def test_an_invalid_hook_is_refused_when_it_is_registered() -> None:
    queue = Queue("postgresql://localhost:1/nowhere")
    with pytest.raises(BadInput, match=r"on_failure got .*: write it above a function"):
        queue.on_failure("mail")  # type: ignore[type-var]  # pyright: ignore
    with pytest.raises(BadInput, match="called with one argument"):
        queue.on_end(lambda: None)  # type: ignore[type-var]  # pyright: ignore
    with pytest.raises(BadInput, match=r"two\(attempt\)"):

        @queue.on_start  # type: ignore[type-var]  # pyright: ignore
        def two(first: object, second: object) -> None: ...


def test_a_sync_queue_has_hooks_too(dsn: str) -> None:
    with SyncQueue(dsn) as queue:
        reasons: list[str] = []

        @queue.on_failure
        def report(attempt: AttemptEnd) -> None:
            reasons.append(str(attempt.reason))

        @queue.job(max_attempts=1)
        def broken() -> None:
            raise LookupError("not there")

        broken.enqueue()
        with queue.worker() as worker:
            worker.run_until_idle()
        assert reasons == ["LookupError: not there"]


async def test_the_recipe_for_sentry_reports_the_exception(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    (recipe,) = [
        code
        for code in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
        if "sentry_sdk" in code
    ]
    sent: list[tuple[dict[str, str], object]] = []

    class Scope:
        def __init__(self) -> None:
            self.tags: dict[str, str] = {}

        def __enter__(self) -> Scope:
            return self

        def __exit__(self, *_: object) -> None: ...

        def set_tag(self, name: str, value: str) -> None:
            self.tags[name] = value

        def set_context(self, name: str, value: dict[str, object]) -> None: ...

        def capture_exception(self, error: BaseException) -> None:
            sent.append((self.tags, error))

        def capture_message(self, message: str, level: str) -> None:
            sent.append((self.tags, message))

    fake_sentry = ModuleType("sentry_sdk")
    fake_sentry.__dict__.update(new_scope=Scope)
    monkeypatch.setitem(sys.modules, "sentry_sdk", fake_sentry)
    exec(recipe, {"queue": queue})

    error = LookupError("not there")

    @queue.job(max_attempts=1)
    async def broken() -> None:
        raise error

    @queue.job(max_attempts=1, timeout=0.01)
    async def slow() -> None:
        await asyncio.sleep(3600)

    await broken.enqueue()
    await slow.enqueue()
    await run_worker(queue)
    assert len(sent) == 2
    by_type = {tags["job_type"]: report for tags, report in sent}
    assert by_type["broken"] is error
    assert str(by_type["slow"]).startswith("slow: timed out")


async def test_an_attempt_that_begins_early_starts_after_the_end_of_the_one_before() -> None:
    """The retry is in line before the answer comes that the failed attempt is stored."""
    order: list[tuple[str, int]] = []
    registered = hooks.Hooks()
    registered.add("start", lambda attempt: order.append(("start", attempt.attempt)))
    registered.add("end", lambda attempt: order.append(("end", attempt.attempt)))
    calls = hooks.HookCalls(registered)
    id = uuid4()
    first, second = (Claim(id, "mail", 100, "{}", n, 3, 0.0, 0.0, 0.0) for n in (1, 2))
    error = ValueError("no")
    calls.started(first)
    calls.raised(first, error)
    calls.started(second)
    ending = Ending(first, Retry(error), began=0.0, ended=1.0)
    calls.settled([ending], {id: State.PENDING})
    await calls.done()
    assert order == [("start", 1), ("end", 1), ("start", 2)]
    await calls.close(asyncio.Event())
