"""`ctx.transaction()`: writes, follow-up jobs and the completion are one commit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from asyncpg.transaction import Transaction

from howdah import (
    AttemptEnd,
    BadInput,
    Fail,
    JobContext,
    JobFailed,
    Queue,
    Retry,
    StaleLease,
    State,
)
from howdah.run.completions import Completions
from tests.support.waiting import eventually

EFFECTS = "create table effects (n int, note text)"
SOON = timedelta(milliseconds=1)


@pytest.fixture
async def effects(dsn: str) -> AsyncGenerator[asyncpg.Connection[asyncpg.Record]]:
    """A connection to a database that has a table of effects."""
    connection = await asyncpg.connect(dsn)
    await connection.execute(EFFECTS)
    yield connection
    await connection.close()


async def written(effects: asyncpg.Connection[asyncpg.Record]) -> list[int]:
    return [row[0] for row in await effects.fetch("select n from effects order by n")]


async def write(conn: Any, n: int) -> None:
    await conn.execute("insert into effects (n) values ($1)", n)


async def test_effects_follow_ups_and_the_completion_are_committed_together(
    queue: Queue, effects: asyncpg.Connection[asyncpg.Record]
) -> None:
    seen: list[object] = []

    @queue.job
    async def mail(n: int) -> None: ...

    @queue.job
    async def order(ctx: JobContext, n: int) -> None:
        async with ctx.transaction() as conn:
            await write(conn, n)
            await mail.options(conn=conn).enqueue(n=n)
            seen.append((await queue.get(ctx.id)).status)
            seen.append((await queue.counts()).get("mail"))
        seen.append((await queue.get(ctx.id)).status)

    handle = await order.enqueue(n=7)
    async with queue.worker(job_types=["order"]) as worker:
        await worker.run_until_idle()
    assert seen[0] in (State.CLAIMED, State.RUNNING)
    assert seen[1:] == [None, State.COMPLETED]
    assert await written(effects) == [7]
    assert (await queue.counts())["mail"] == {State.PENDING: 1}
    job = await handle.job()
    assert (job.status, job.attempts, job.progress, job.result) == (State.COMPLETED, 1, 100, None)


async def test_an_error_in_the_block_rolls_all_of_it_back(
    queue: Queue, effects: asyncpg.Connection[asyncpg.Record]
) -> None:
    @queue.job(backoff=SOON)
    async def order(ctx: JobContext) -> None:
        async with ctx.transaction() as conn:
            await write(conn, ctx.attempt)
            await queue.enqueue("mail", conn=conn)
            if ctx.attempt < 3:
                raise OSError("not yet")

    handle = await order.enqueue()
    async with queue.worker() as worker:
        await handle.result(timeout=20)
        await worker.run_until_idle()
    assert await written(effects) == [3]
    assert (await queue.counts())["mail"] == {State.PENDING: 1}
    assert [e["error"] for e in (await handle.job()).errors] == ["OSError: not yet"] * 2


async def test_an_error_of_a_statement_is_the_drivers_own(
    queue: Queue, effects: asyncpg.Connection[asyncpg.Record]
) -> None:
    @queue.job(max_attempts=1)
    async def order(ctx: JobContext) -> None:
        async with ctx.transaction() as conn:
            await write(conn, 1)
            await conn.execute("select 1 / 0")

    handle = await order.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed, match="DivisionByZeroError"):
            await handle.result(timeout=20)
    assert await written(effects) == []


async def test_a_commit_that_the_server_refuses_fails_the_attempt(
    queue: Queue, effects: asyncpg.Connection[asyncpg.Record]
) -> None:
    await effects.execute("alter table effects add unique (n) deferrable initially deferred")

    @queue.job(max_attempts=1)
    async def order(ctx: JobContext) -> None:
        async with ctx.transaction() as conn:
            await write(conn, 1)
            await write(conn, 1)

    handle = await order.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed, match="UniqueViolationError"):
            await handle.result(timeout=20)
    assert await written(effects) == []


async def test_a_worker_that_was_given_up_rolls_back(
    queue: Queue, dsn: str, effects: asyncpg.Connection[asyncpg.Record]
) -> None:
    """The job is given to another worker while the first one is in its block."""
    errors: list[BaseException] = []
    may_end = asyncio.Event()
    inside = asyncio.Event()

    @queue.job(backoff=SOON)
    async def order(ctx: JobContext) -> None:
        try:
            async with ctx.transaction() as conn:
                await write(conn, ctx.attempt)
                if ctx.attempt == 1:
                    inside.set()
                    await may_end.wait()
        except BaseException as error:
            errors.append(error)
            raise

    handle = await order.enqueue()
    async with queue.worker(silent_after=3600):
        await inside.wait()
        await effects.execute(  # what recover does, but nobody can claim it yet
            "update howdah.jobs_live set status = 'pending', worker_id = null, ready_at = null, "
            "run_at = now() + interval '1 hour'"
        )
        may_end.set()
        await eventually(lambda: bool(errors))
        await effects.execute("update howdah.jobs_live set run_at = null, ready_at = now()")
        await handle.result(timeout=20)
    assert isinstance(errors[0], StaleLease)
    assert await written(effects) == [2]


async def test_a_cancelled_job_is_stopped_in_its_block_and_rolled_back(
    queue: Queue, effects: asyncpg.Connection[asyncpg.Record]
) -> None:
    inside = asyncio.Event()

    @queue.job
    async def order(ctx: JobContext) -> None:
        async with ctx.transaction() as conn:
            await write(conn, 1)
            inside.set()
            await asyncio.sleep(3600)

    handle = await order.enqueue()
    async with queue.worker() as worker:
        await inside.wait()
        assert await handle.cancel(), "a block makes nobody wait"
        await eventually(lambda: worker.free_slots == 100)
    assert await written(effects) == []
    assert (await handle.job()).status is State.CANCELLED


async def test_a_timeout_in_the_block_rolls_back(
    queue: Queue, effects: asyncpg.Connection[asyncpg.Record]
) -> None:
    @queue.job(timeout=0.1, max_attempts=1)
    async def order(ctx: JobContext) -> None:
        async with ctx.transaction() as conn:
            await write(conn, 1)
            await conn.execute("select pg_sleep(3600)")

    handle = await order.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed, match="timed out"):
            await handle.result(timeout=20)
    assert await written(effects) == []


async def test_reports_beats_and_other_jobs_do_not_wait_for_a_block(
    queue: Queue, effects: asyncpg.Connection[asyncpg.Record]
) -> None:
    """More handlers than there are connections are inside their blocks."""
    inside = 0
    may_end = asyncio.Event()

    @queue.job
    async def order(ctx: JobContext, n: int) -> None:
        nonlocal inside
        async with ctx.transaction() as conn:
            await write(conn, n)
            inside += 1
            await ctx.progress(50, "inside")
            await ctx.emit("inside", n)
            await may_end.wait()

    @queue.job
    async def other() -> int:
        return 1

    handles = await order.enqueue_many(({"n": n} for n in range(20)), returning="handles")
    async with queue.worker(concurrency=30) as worker:
        await eventually(lambda: inside == queue.store.connections)
        first = handles[0]
        await eventually(lambda: _has_progress(queue, first.id))
        assert await (await other.enqueue()).result(timeout=20) == 1
        may_end.set()
        await worker.run_until_idle()
        assert inside == 20
    assert await written(effects) == list(range(20))
    assert [(await handle.job()).events_count for handle in handles] == [1] * 20


async def _has_progress(queue: Queue, id: Any) -> bool:
    return (await queue.get(id)).progress == 50


async def test_the_result_is_given_to_complete_in_inside_the_block(
    queue: Queue, effects: asyncpg.Connection[asyncpg.Record]
) -> None:
    @queue.job
    async def order(ctx: JobContext) -> dict[str, int]:
        async with ctx.transaction() as conn:
            await write(conn, 1)
            await ctx.complete_in(conn, {"rows": 1})
        return {"rows": 1}

    handle = await order.enqueue()
    async with queue.worker():
        assert await handle.result(timeout=20) == {"rows": 1}
    assert await written(effects) == [1]


async def test_what_the_handler_does_after_the_block_changes_nothing(
    queue: Queue, effects: asyncpg.Connection[asyncpg.Record], caplog: pytest.LogCaptureFixture
) -> None:
    ends: list[str] = []

    @queue.on_end
    def note(attempt: AttemptEnd) -> None:
        ends.append(f"{attempt.job_type} {attempt.outcome}")

    @queue.job
    async def returns(ctx: JobContext) -> int:
        async with ctx.transaction() as conn:
            await write(conn, 1)
        return 5

    @queue.job
    async def raises(ctx: JobContext) -> None:
        async with ctx.transaction() as conn:
            await write(conn, 2)
        raise OSError("too late")

    @queue.job
    async def decides(ctx: JobContext) -> Retry:
        async with ctx.transaction() as conn:
            await write(conn, 3)
        return Retry("again")

    for job_type in (returns, raises, decides):
        await job_type.enqueue()
    async with queue.worker() as worker:
        await worker.run_until_idle()
    assert await written(effects) == [1, 2, 3]
    jobs = await queue.jobs()
    assert {(job.status, job.attempts, job.result) for job in jobs} == {(State.COMPLETED, 1, None)}
    assert sorted(ends) == ["decides completed", "raises completed", "returns completed"]
    assert "job.result_dropped" in caplog.text
    assert caplog.text.count("job.ended_before") == 2


async def test_a_handler_that_goes_on_after_its_block_is_left_alone(
    queue: Queue, effects: asyncpg.Connection[asyncpg.Record]
) -> None:
    """Beats do not find its job any more; that must not look like a lost lease."""
    done = asyncio.Event()

    @queue.job
    async def order(ctx: JobContext) -> None:
        async with ctx.transaction() as conn:
            await write(conn, 1)
        with pytest.raises(StaleLease, match="completed in a transaction"):
            await ctx.progress(1)
        with pytest.raises(BadInput, match="completed already"):
            async with ctx.transaction():
                pass
        for _ in range(2):  # two whole rounds of beats have asked for it
            before = await effects.fetchval("select beat_at from howdah.workers")
            async with asyncio.timeout(20):
                while await effects.fetchval("select beat_at from howdah.workers") == before:
                    await asyncio.sleep(0.01)
        assert not ctx.lost
        done.set()

    await order.enqueue()
    async with queue.worker(silent_after=0.5) as worker:
        await worker.run_until_idle()
    assert done.is_set()


async def test_a_lost_answer_of_the_commit_is_asked_for(
    queue: Queue, effects: asyncpg.Connection[asyncpg.Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit happened, and the handler saw an error: the job is complete, and runs once."""
    commit: Any = Transaction.commit

    async def lost(transaction: Any) -> None:
        await commit(transaction)
        raise ConnectionResetError("the answer was lost")

    monkeypatch.setattr(Transaction, "commit", lost)

    @queue.job(backoff=SOON)
    async def order(ctx: JobContext) -> None:
        async with ctx.transaction() as conn:
            await write(conn, ctx.attempt)

    handle = await order.enqueue()
    async with queue.worker() as worker:
        await worker.run_until_idle()
    job = await handle.job()
    assert (job.status, job.attempts) == (State.COMPLETED, 1)
    assert await written(effects) == [1]


async def test_a_lost_commit_is_retried(
    queue: Queue, effects: asyncpg.Connection[asyncpg.Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection broke before the commit arrived."""
    commit: Any = Transaction.commit

    @queue.job(backoff=SOON)
    async def order(ctx: JobContext) -> None:
        async def lost(transaction: Any) -> None:
            if ctx.attempt == 1:
                transaction._connection.terminate()
                raise ConnectionResetError("cut")
            await commit(transaction)

        monkeypatch.setattr(Transaction, "commit", lost)
        async with ctx.transaction() as conn:
            await write(conn, ctx.attempt)

    handle = await order.enqueue()
    async with queue.worker():
        await handle.result(timeout=20)
    assert await written(effects) == [2]
    assert (await handle.job()).errors[0]["error"] == "ConnectionResetError: cut"


async def test_keys_and_limits_are_handed_over_as_by_any_completion(
    queue: Queue, effects: asyncpg.Connection[asyncpg.Record]
) -> None:
    queue.limit("one", at_once=1)
    order_seen: list[int] = []
    at_work = 0

    @queue.job(key="account", ordered=True)
    async def booked(ctx: JobContext, account: str, n: int) -> None:
        nonlocal at_work
        at_work += 1
        assert at_work == 1
        async with ctx.transaction() as conn:
            await write(conn, n)
            order_seen.append(n)
            at_work -= 1  # what follows the block runs beside the next job of the key

    @queue.job(limit="one")
    async def limited(ctx: JobContext, n: int) -> None:
        async with ctx.transaction() as conn:
            await write(conn, n)

    async with queue.worker() as worker:
        await booked.enqueue_many({"account": "a", "n": n} for n in range(50))
        await limited.enqueue_many({"n": n} for n in range(50, 60))
        await worker.run_until_idle()
    assert order_seen == list(range(50))
    assert await written(effects) == list(range(60))


async def test_a_job_of_a_run_is_not_completed_before_the_one_before_it(
    queue: Queue, effects: asyncpg.Connection[asyncpg.Record]
) -> None:
    """The one before ends in a batch: if the worker died between, only that would run again."""
    await effects.execute(
        """
        create function note_order() returns trigger language plpgsql as $$
        begin
            insert into public.effects values ((new.data ->> 'n')::int, pg_current_xact_id()::text);
            return null;
        end $$;
        create trigger note_order after insert on howdah.jobs_finished
            for each row execute function note_order();
        """
    )

    @queue.job(key="account", ordered=True)
    async def booked(ctx: JobContext, account: str, n: int) -> None:
        if n % 2:
            async with ctx.transaction():
                pass

    await booked.enqueue_many({"account": "a", "n": n} for n in range(200))
    async with queue.worker() as worker:
        await worker.run_until_idle()
    rows = await effects.fetch("select n from effects order by note::bigint, n")
    assert [row[0] for row in rows] == list(range(200))


async def test_the_times_of_the_job_are_those_of_its_end_not_of_its_transaction(
    queue: Queue, effects: asyncpg.Connection[asyncpg.Record]
) -> None:
    @queue.job
    async def order(ctx: JobContext) -> None:
        async with ctx.transaction() as conn:
            await conn.execute("select pg_sleep(0.2)")

    handle = await order.enqueue()
    async with queue.worker():
        await handle.result(timeout=20)
    job = await handle.job()
    assert job.started_at is not None
    assert job.completed_at is not None
    assert job.completed_at - job.started_at >= timedelta(seconds=0.2)


async def test_session_state_does_not_reach_the_next_handler(queue: Queue) -> None:
    seen: list[str] = []

    @queue.job
    async def order(ctx: JobContext) -> None:
        async with ctx.transaction() as conn:
            seen.append(await conn.fetchval("show work_mem"))
            await conn.execute("set work_mem = '1MB'")

    for _ in range(3):
        await order.enqueue()
    async with queue.worker(concurrency=1) as worker:
        await worker.run_until_idle()
    assert len(seen) == 3
    assert "1MB" not in seen


async def test_a_nested_block_is_a_savepoint_of_the_connection(
    queue: Queue, effects: asyncpg.Connection[asyncpg.Record]
) -> None:
    @queue.job
    async def order(ctx: JobContext) -> None:
        async with ctx.transaction() as conn:
            await write(conn, 1)
            savepoint = conn.transaction()
            await savepoint.start()
            await write(conn, 2)
            await ctx.complete_in(conn, "undone")
            await savepoint.rollback()
            with pytest.raises(BadInput, match="open already"):
                async with ctx.transaction():
                    pass

    handle = await order.enqueue()
    async with queue.worker():
        assert await handle.result(timeout=20) is None, "its savepoint was rolled back"
    assert await written(effects) == [1]


async def test_a_transaction_that_the_handler_ended_itself_fails_the_attempt(
    queue: Queue, effects: asyncpg.Connection[asyncpg.Record]
) -> None:
    @queue.job(max_attempts=1)
    async def order(ctx: JobContext) -> None:
        async with ctx.transaction() as conn:
            await conn.execute("commit")

    handle = await order.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed, match="the transaction has ended"):
            await handle.result(timeout=20)


async def test_a_block_that_is_idle_for_too_long_is_ended_by_the_server(
    queue: Queue, effects: asyncpg.Connection[asyncpg.Record]
) -> None:
    """So a worker that is frozen does not keep the locks of its block for ever."""

    @queue.job(max_attempts=1)
    async def order(ctx: JobContext) -> None:
        async with ctx.transaction(idle_timeout=0.1) as conn:
            await write(conn, 1)
            await eventually(conn.is_closed)

    handle = await order.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed, match=r"idle-in-transaction|closed|released"):
            await handle.result(timeout=20)
    assert await written(effects) == []


async def test_a_statement_without_an_answer_fails_the_block(
    dsn: str, effects: asyncpg.Connection[asyncpg.Record]
) -> None:
    async with Queue(dsn, call_timeout=1) as queue:

        @queue.job(max_attempts=1)
        async def order(ctx: JobContext) -> None:
            async with ctx.transaction() as conn:
                await write(conn, 1)
                await conn.execute("select pg_sleep(3600)")

        handle = await order.enqueue()
        async with queue.worker():
            with pytest.raises(JobFailed, match="TimeoutError"):
                await handle.result(timeout=20)
    assert await written(effects) == []


async def test_an_event_that_cannot_be_stored_fails_the_block(
    queue: Queue, effects: asyncpg.Connection[asyncpg.Record]
) -> None:
    await effects.execute(
        "alter table howdah.job_events add constraint no_bad_events check (kind <> 'bad')"
    )

    @queue.job
    async def order(ctx: JobContext) -> None:
        async with ctx.transaction() as conn:
            await write(conn, 1)
            await ctx.emit("bad")

    handle = await order.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed, match="could not be stored"):
            await handle.result(timeout=20)
    assert await written(effects) == []


async def test_a_handler_that_cannot_be_stopped_in_its_block_is_rolled_back(
    queue: Queue, effects: asyncpg.Connection[asyncpg.Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("howdah.run.executor.CLEANUP", 0.1)
    may_end = asyncio.Event()

    @queue.job(timeout=0.1, max_attempts=1)
    async def stubborn(ctx: JobContext) -> None:
        async with ctx.transaction() as conn:
            await write(conn, 1)
            while not may_end.is_set():
                try:
                    await may_end.wait()
                except asyncio.CancelledError:
                    continue

    handle = await stubborn.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed, match="timed out"):
            await handle.result(timeout=20)
        sql = "select count(*) from pg_locks where relation = 'effects'::regclass"
        await eventually(lambda: _is_zero(effects, sql))
        may_end.set()
    assert await written(effects) == []


async def test_a_worker_that_stops_releases_a_job_whose_handler_stays_in_its_block(
    queue: Queue, effects: asyncpg.Connection[asyncpg.Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("howdah.worker.CLEANUP", 0.1)
    may_end, inside = asyncio.Event(), asyncio.Event()

    @queue.job
    async def stubborn(ctx: JobContext) -> None:
        async with ctx.transaction() as conn:
            await write(conn, 1)
            inside.set()
            while not may_end.is_set():
                try:
                    await may_end.wait()
                except asyncio.CancelledError:
                    continue

    handle = await stubborn.enqueue()
    async with queue.worker(grace=0):
        await inside.wait()
    job = await handle.job()
    assert (job.status, job.attempts) == (State.PENDING, 0)
    assert await written(effects) == []
    may_end.set()


async def _is_zero(connection: asyncpg.Connection[asyncpg.Record], sql: str) -> bool:
    return await connection.fetchval(sql) == 0


@pytest.mark.parametrize("idle", [0, -1, "long", timedelta(days=900)])
async def test_a_bad_idle_timeout_is_refused(queue: Queue, idle: Any) -> None:
    @queue.job(max_attempts=1)
    async def order(ctx: JobContext) -> None:
        async with ctx.transaction(idle_timeout=idle):
            pass

    handle = await order.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed, match="idle_timeout"):
            await handle.result(timeout=20)


async def test_a_plain_function_is_told_what_to_use_instead(queue: Queue) -> None:
    @queue.job(max_attempts=1)
    def order(ctx: JobContext) -> None:
        block: Any = ctx.transaction()
        with block:
            pass

    @queue.job(max_attempts=1)
    def with_a_loop(ctx: JobContext) -> None:
        async def run() -> None:
            async with ctx.transaction():
                pass

        asyncio.run(run())

    async with queue.worker():
        for job_type in (order, with_a_loop):
            handle = await job_type.enqueue()
            with pytest.raises(JobFailed, match=r"ctx\.complete_in\(conn, result\)"):
                await handle.result(timeout=20)


async def test_a_context_outlives_its_job_and_completes_nothing(queue: Queue) -> None:
    kept: list[JobContext] = []

    @queue.job
    async def order(ctx: JobContext) -> None:
        kept.append(ctx)

    await order.enqueue()
    async with queue.worker() as worker:
        await worker.run_until_idle()
        with pytest.raises(StaleLease, match="its attempt has ended"):
            kept[0].transaction()
        with pytest.raises(StaleLease, match="its attempt has ended"):
            kept[0].complete_in(object())


async def test_the_idempotency_key_is_the_same_in_all_attempts(queue: Queue) -> None:
    keys: list[str] = []

    @queue.job(backoff=SOON)
    async def charge(ctx: JobContext) -> None:
        keys.append(ctx.idempotency_key)
        if ctx.attempt < 3:
            raise OSError

    first, second = await charge.enqueue(), await charge.enqueue()
    async with queue.worker():
        await first.result(timeout=20)
        await second.result(timeout=20)
    assert len(keys) == 6
    assert set(keys) == {f"howdah-{first.id}", f"howdah-{second.id}"}


async def test_a_decision_in_the_block_rolls_it_back(
    queue: Queue, effects: asyncpg.Connection[asyncpg.Record]
) -> None:
    @queue.job
    async def order(ctx: JobContext) -> None:
        async with ctx.transaction() as conn:
            await write(conn, 1)
            raise Fail("no such customer")

    handle = await order.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed, match="no such customer"):
            await handle.result(timeout=20)
    assert await written(effects) == []


async def test_plain_jobs_do_not_touch_any_of_this(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("of", "outcome", "pool", "decides", "ended"):
        monkeypatch.delattr(Completions, name)

    @queue.job
    async def plain(ctx: JobContext) -> None:
        await ctx.progress(1)

    @queue.job
    def plain_thread(ctx: JobContext) -> None:
        ctx.progress(1)

    async with queue.worker() as worker:
        for job_type in (plain, plain_thread):
            await (await job_type.enqueue()).result(timeout=20)
        await worker.run_until_idle()
