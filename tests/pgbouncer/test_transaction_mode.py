"""Behind PgBouncer in transaction mode everything works; only LISTEN needs a direct connection.

A real PgBouncer shares four server connections among all clients, in turn. A prepared statement, a
setting or a lock that needs one session is lost in the next call.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from howdah import Handle, HowdahError, JobContext, Queue, Retry, State
from howdah.client.sync import SyncQueue
from howdah.events import Emitted
from tests.cli.support import Cli, started
from tests.pgbouncer.bouncer import Bouncer
from tests.support.processes import ROOT
from tests.support.waiting import eventually, wait_until


def count_listening_sessions(bouncer: Bouncer, database: str) -> int:
    return bouncer.server.value(
        "select count(*) from pg_stat_activity where datname = %s and query ilike 'listen%%'",
        database,
    )


def queues_behind_pgbouncer(bouncer: Bouncer, database: str) -> dict[str, Queue]:
    """Return a queue for every combination of options."""
    dsn, direct = bouncer.dsn(database), bouncer.direct(database)
    return {
        "detected": Queue(dsn),
        "detected, listens": Queue(dsn, listen_dsn=direct),
        "configured": Queue(dsn, pgbouncer=True),
        "configured, listens": Queue(dsn, pgbouncer=True, listen_dsn=direct),
    }


@pytest.fixture(params=["detected", "detected, listens", "configured", "configured, listens"])
def queue(request: pytest.FixtureRequest, bouncer: Bouncer, database: str) -> Queue:
    return queues_behind_pgbouncer(bouncer, database)[request.param]


async def test_pgbouncer_shares_its_sessions_among_calls(bouncer: Bouncer, database: str) -> None:
    """The tests of this file need this: with one session for each client they prove nothing."""
    async with Queue(bouncer.dsn(database), pgbouncer=True) as queue:

        async def session() -> Any:
            return await queue.store.fetchval("select pg_backend_pid() from pg_sleep(0.01)")

        seen = await asyncio.gather(*(session() for _ in range(30)))
        assert len(set(seen)) == 4
        in_turn = [await session() for _ in range(8)]
        assert len(set(in_turn)) > 1, "calls one after another"


async def test_jobs_run_with_progress_events_retries_and_results(queue: Queue) -> None:
    """Uses enqueue, claim, progress, events, retry and results at the same time, repeatedly."""

    @queue.job(max_attempts=3)
    async def double(ctx: JobContext, n: int) -> int:
        await ctx.progress(50, "half")
        await ctx.emit("seen", n)
        if ctx.attempt == 1 and n % 7 == 0:
            raise Retry("once more", after=0)
        return n * 2

    async with queue, queue.worker(concurrency=20, poll=timedelta(milliseconds=100)):
        for _ in range(3):
            handles: list[Handle[int]] = [await double.enqueue(n=n) for n in range(10)]
            handles += await asyncio.gather(*(double.enqueue(n=n) for n in range(10, 30)))
            results = await asyncio.gather(*(handle.result(timeout=60) for handle in handles))
            assert results == [n * 2 for n in range(30)]
            events = [event async for event in handles[7].events()]
            assert [e.data for e in events if isinstance(e, Emitted)] == [7, 7]
        drafts = [double.draft(n=n) for n in range(2000)]
        assert await double.enqueue_many(drafts) == 2000
        await eventually(lambda: all_done(queue, 2090), "all of the stream is done")
        assert (await queue.get(drafts[-1].id)).result == 1999 * 2


async def all_done(queue: Queue, count: int) -> bool:
    return (await queue.counts())["double"].get(State.COMPLETED, 0) == count


async def test_verbs_and_reads(queue: Queue) -> None:
    async with queue:
        ids = [(await queue.enqueue("mail", {"n": n})).id for n in range(5)]
        assert await queue.cancel(ids[:1]) == {ids[0]}
        claimed = await queue.claim(["mail"], 2, worker_id="me")
        await queue.complete(claimed[0], {"done": True})
        assert await queue.fail(claimed[1], "broke", retry=False) is State.FAILED
        assert await queue.requeue([claimed[1].id]) == {claimed[1].id}
        assert len(await queue.jobs(job_type="mail", status="pending")) == 3
        await queue.recover_stale_jobs()
        await queue.promote()
        await queue.prune()
        assert (await queue.counts())["mail"][State.CANCELLED] == 1


async def test_a_worker_beats_and_leaves_nothing_in_shared_sessions(
    bouncer: Bouncer, database: str, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    """No lock, setting or prepared statement is left in a session that other clients get."""

    @queue.job
    async def nap() -> None:
        await asyncio.sleep(0.01)

    async with queue, queue.worker(silent_after=timedelta(seconds=5)) as worker:
        await asyncio.gather(*[(await nap.enqueue()).result(timeout=30) for _ in range(10)])

        async def beats() -> bool:
            own = [health for health in await queue.workers() if health.id == worker.id]
            return bool(own) and own[0].beat_at > own[0].started_at

        await eventually(beats, "a second beat")
        assert count_listening_sessions(bouncer, database) <= 1
    warnings = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    own = [message for message in warnings if "howdah_test_" not in message]  # not another test
    assert [message for message in own if not message.startswith("store.pooled")] == []
    with psycopg.connect(bouncer.direct(database), autocommit=True) as connection:
        locks = connection.execute(
            "select count(*) from pg_locks where locktype = 'advisory' "
            "and database = (select oid from pg_database where datname = current_database())"
        ).fetchone()
    assert locks == (0,)
    async with Queue(bouncer.dsn(database), pgbouncer=True) as other:
        for _ in range(8):
            statements = await other.store.fetchval("select count(*) from pg_prepared_statements")
            assert statements <= 4, "only the statements of the first detection"
            assert await other.store.fetchval("show synchronous_commit") == "on"


async def is_done(handle: Handle[Any]) -> bool:
    return (await handle.job()).status is State.COMPLETED


async def test_workers_are_woken_through_a_listen_dsn(bouncer: Bouncer, database: str) -> None:
    queue = Queue(bouncer.dsn(database), listen_dsn=bouncer.direct(database))

    @queue.job
    async def quick() -> str:
        return "done"

    async with queue, queue.worker(poll=timedelta(days=1)):
        # with a poll once a day, jobs end in time only if the worker is woken
        await eventually(
            lambda: count_listening_sessions(bouncer, database) >= 1, "the worker listens"
        )
        for _ in range(3):
            handle = await quick.enqueue()
            await eventually(lambda handle=handle: is_done(handle), "woken, and done")


async def test_without_a_listen_dsn_workers_poll_and_log_it(
    bouncer: Bouncer, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    queue = Queue(bouncer.dsn(database))

    @queue.job
    async def quick() -> str:
        return "done"

    with caplog.at_level(logging.INFO):
        async with queue, queue.worker(poll=timedelta(days=1)):
            assert not queue.store.can_listen
            for _ in range(3):
                assert await (await quick.enqueue()).result(timeout=20) == "done"
            assert count_listening_sessions(bouncer, database) == 0
    messages = [r.getMessage() for r in caplog.records if r.getMessage().startswith("store.pooled")]
    assert len(messages) == 1, "logged once"
    assert "HOWDAH_LISTEN_DSN" in messages[0]
    assert bouncer.server.password not in caplog.text
    assert "listens=False" in caplog.text


async def test_a_listen_dsn_behind_pgbouncer_is_detected(
    bouncer: Bouncer, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    dsn = bouncer.dsn(database)
    queue = Queue(dsn, listen_dsn=dsn)

    @queue.job
    async def quick() -> str:
        return "done"

    async with queue, queue.worker(poll=timedelta(days=1)):
        assert await (await quick.enqueue()).result(timeout=20) == "done"
    assert "LISTEN does not work at" in caplog.text
    assert bouncer.server.password not in caplog.text


async def test_a_follower_detects_the_pooler_if_it_is_the_first_call(
    bouncer: Bouncer, database: str
) -> None:
    """No earlier call has detected the pooler."""
    async with Queue(bouncer.direct(database)) as direct:
        handle = await direct.enqueue("mail")
        async with Queue(bouncer.dsn(database)) as queue:
            waiting = asyncio.create_task(queue.handle(handle.id).result(timeout=30))
            (job,) = await direct.claim(["mail"], worker_id="me")
            await direct.complete(job, "done")
            assert await waiting == "done"


async def test_many_first_calls_at_once_detect_the_pooler(bouncer: Bouncer, database: str) -> None:
    for _ in range(3):
        async with Queue(bouncer.dsn(database)) as queue:
            await asyncio.gather(*(queue.enqueue("mail", {"n": n}) for n in range(40)))
    async with Queue(bouncer.direct(database)) as direct:
        assert (await direct.counts())["mail"][State.PENDING] == 120


async def test_pgbouncer_false_behind_a_pooler_raises_a_clear_error(
    bouncer: Bouncer, database: str
) -> None:
    async with Queue(bouncer.dsn(database), pgbouncer=False) as queue:

        async def enqueue_until_error() -> None:
            for n in range(500):
                await asyncio.gather(*(queue.enqueue("mail", {"n": n}) for _ in range(8)))

        with pytest.raises(HowdahError, match="a pooler in transaction mode answers at"):
            await enqueue_until_error()


async def test_a_direct_connection_is_not_taken_for_a_pooler(
    bouncer: Bouncer, database: str
) -> None:
    async with Queue(bouncer.direct(database)) as queue:
        await queue.enqueue("mail")
        assert queue.store.can_listen
        assert not queue.store.pooled


async def test_the_schema_can_be_installed_through_pgbouncer(bouncer: Bouncer) -> None:
    name = "installed_through"
    bouncer.server.value(f"create database {name}")
    try:
        for changed in (True, False, False):
            queue = Queue(bouncer.dsn(name))
            assert await queue.install() is changed
            await queue.enqueue("mail")
            await queue.close()
    finally:
        bouncer.server.value(f"drop database {name} with (force)")


def test_the_sync_client_and_the_command_line_work(bouncer: Bouncer, database: str) -> None:
    with SyncQueue(bouncer.dsn(database)) as queue:
        ids = [queue.enqueue("mail", {"n": n}).id for n in range(10)]
        assert len(queue.claim(["mail"], 10, worker_id="me")) == 10
    cli = Cli(bouncer.dsn(database))
    for id in ids:
        assert cli.json("show", id)["status"] == "claimed"
    cli.ok("stats")
    cli.ok("cancel", *ids)


@pytest.mark.parametrize("source", ["option", "environment"])
def test_the_worker_command_takes_a_listen_dsn(
    bouncer: Bouncer, database: str, source: str
) -> None:
    direct = bouncer.direct(database)
    options = ["--listen-dsn", direct] if source == "option" else []
    more = {} if source == "option" else {"HOWDAH_LISTEN_DSN": direct}
    with started(
        *("worker", "tests.pgbouncer.app:queue", "--poll", "300d", *options),
        cwd=ROOT,
        HOWDAH_DSN=bouncer.dsn(database),
        **more,
    ) as worker:
        assert worker.stderr
        log = ""
        while "worker.started" not in log:
            line = worker.stderr.readline()
            assert line, f"the worker ended: {log}"
            log += line
        assert "store.pooled" in log
        assert "listens=True" in log
        with SyncQueue(bouncer.direct(database)) as queue:
            id = queue.enqueue("double", {"n": 21}).id
            wait_until(lambda: queue.get(id).status is State.COMPLETED, "woken, and done")
            assert queue.get(id).result == 42
