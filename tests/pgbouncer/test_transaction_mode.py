"""Behind PgBouncer in transaction mode everything works; only listening needs a way round it.

A real PgBouncer with four server connections for all clients, handed round in turn. Whatever would
need a session of its own, a kept statement, a setting, a lock, finds another one in the next call.
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
from tests.cli.support import Cli, started, until_true
from tests.pgbouncer.bouncer import Bouncer
from tests.support.processes import ROOT
from tests.support.waiting import eventually


def sessions_that_listen(bouncer: Bouncer, database: str) -> int:
    return bouncer.server.value(
        "select count(*) from pg_stat_activity where datname = %s and query ilike 'listen%%'",
        database,
    )


def ways(bouncer: Bouncer, database: str) -> dict[str, Queue]:
    """Every way to name a queue behind PgBouncer."""
    dsn, direct = bouncer.dsn(database), bouncer.direct(database)
    return {
        "found out": Queue(dsn),
        "found out, listens": Queue(dsn, listen_dsn=direct),
        "told": Queue(dsn, pgbouncer=True),
        "told, listens": Queue(dsn, pgbouncer=True, listen_dsn=direct),
    }


@pytest.fixture(params=["found out", "found out, listens", "told", "told, listens"])
def queue(request: pytest.FixtureRequest, bouncer: Bouncer, database: str) -> Queue:
    return ways(bouncer, database)[request.param]


async def test_every_call_meets_a_session_of_somebody_else(bouncer: Bouncer, database: str) -> None:
    """The tests here prove nothing if PgBouncer gives everybody the same session."""
    async with Queue(bouncer.dsn(database), pgbouncer=True) as queue:

        async def session() -> Any:
            return await queue.store.fetchval("select pg_backend_pid() from pg_sleep(0.01)")

        seen = await asyncio.gather(*(session() for _ in range(30)))
        assert len(set(seen)) == 4
        in_turn = [await session() for _ in range(8)]
        assert len(set(in_turn)) > 1, "one client after another"


async def test_the_whole_life_of_jobs(queue: Queue) -> None:
    """Enqueue one and many, claim, progress, events, retry, results, all at once, for a while."""

    @queue.job(max_attempts=3)
    async def live(ctx: JobContext, n: int) -> int:
        await ctx.progress(50, "half")
        await ctx.emit("seen", n)
        if ctx.attempt == 1 and n % 7 == 0:
            raise Retry("once more", after=0)
        return n * 2

    async with queue, queue.worker(concurrency=20, poll=timedelta(milliseconds=100)):
        for _ in range(3):
            handles: list[Handle[int]] = [await live.enqueue(n=n) for n in range(10)]
            handles += await asyncio.gather(*(live.enqueue(n=n) for n in range(10, 30)))
            results = await asyncio.gather(*(one.result(timeout=60) for one in handles))
            assert results == [n * 2 for n in range(30)]
            events = [event async for event in handles[7].events()]
            assert [e.data for e in events if isinstance(e, Emitted)] == [7, 7]
        drafts = [live.draft(n=n) for n in range(2000)]
        assert await live.enqueue_many(drafts) == 2000
        await eventually(lambda: all_done(queue, 2090), "all of the stream is done")
        assert (await queue.get(drafts[-1].id)).result == 1999 * 2


async def all_done(queue: Queue, count: int) -> bool:
    return (await queue.counts())["live"].get(State.COMPLETED, 0) == count


async def test_steering_and_looking(queue: Queue) -> None:
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


async def test_a_worker_beats_and_its_locks_are_nobody_elses(
    bouncer: Bouncer, database: str, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    """No lock, setting or statement of ours is left in a session that others will get."""

    @queue.job
    async def nap() -> None:
        await asyncio.sleep(0.01)

    async with queue, queue.worker(silent_after=timedelta(seconds=5)) as worker:
        await asyncio.gather(*[(await nap.enqueue()).result(timeout=30) for _ in range(10)])

        async def beats() -> bool:
            found = [one for one in await queue.workers() if one.id == worker.id]
            return bool(found) and found[0].beat_at > found[0].started_at

        await eventually(beats, "a second beat")
        assert sessions_that_listen(bouncer, database) <= 1
    complaints = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    ours = [said for said in complaints if "howdah_test_" not in said]  # not another test
    assert [said for said in ours if not said.startswith("store.pooled")] == []
    with psycopg.connect(bouncer.direct(database), autocommit=True) as connection:
        left = connection.execute(
            "select count(*) from pg_locks where locktype = 'advisory' "
            "and database = (select oid from pg_database where datname = current_database())"
        ).fetchone()
    assert left == (0,)
    async with Queue(bouncer.dsn(database), pgbouncer=True) as other:
        for _ in range(8):
            kept = await other.store.fetchval("select count(*) from pg_prepared_statements")
            assert kept <= 4, "what the first look left behind, and nothing since"
            assert await other.store.fetchval("show synchronous_commit") == "on"


async def is_done(handle: Handle[Any]) -> bool:
    return (await handle.job()).status is State.COMPLETED


async def test_with_a_direct_address_workers_are_woken(bouncer: Bouncer, database: str) -> None:
    queue = Queue(bouncer.dsn(database), listen_dsn=bouncer.direct(database))

    @queue.job
    async def quick() -> str:
        return "done"

    async with queue, queue.worker(poll=timedelta(days=1)):
        # polled once a day, these would not end before the deadline
        await eventually(lambda: sessions_that_listen(bouncer, database) >= 1, "somebody listens")
        for _ in range(3):
            handle = await quick.enqueue()
            await eventually(lambda handle=handle: is_done(handle), "woken, and done")


async def test_without_one_workers_look_and_say_so(
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
            assert sessions_that_listen(bouncer, database) == 0
    said = [r.getMessage() for r in caplog.records if r.getMessage().startswith("store.pooled")]
    assert len(said) == 1, "said once"
    assert "HOWDAH_LISTEN_DSN" in said[0]
    assert bouncer.server.password not in caplog.text
    assert "listens=False" in caplog.text


async def test_a_listen_dsn_that_is_pooled_too_is_noticed(
    bouncer: Bouncer, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    dsn = bouncer.dsn(database)
    queue = Queue(dsn, listen_dsn=dsn)

    @queue.job
    async def quick() -> str:
        return "done"

    async with queue, queue.worker(poll=timedelta(days=1)):
        assert await (await quick.enqueue()).result(timeout=20) == "done"
    assert "no messages come from" in caplog.text
    assert bouncer.server.password not in caplog.text


async def test_a_follower_that_comes_first_finds_out_too(bouncer: Bouncer, database: str) -> None:
    """Nothing was called yet that would have found out who answers."""
    async with Queue(bouncer.direct(database)) as direct:
        handle = await direct.enqueue("mail")
        async with Queue(bouncer.dsn(database)) as queue:
            waiting = asyncio.create_task(queue.handle(handle.id).result(timeout=30))
            (job,) = await direct.claim(["mail"], worker_id="me")
            await direct.complete(job, "done")
            assert await waiting == "done"


async def test_many_that_call_at_once_find_out_together(bouncer: Bouncer, database: str) -> None:
    for _ in range(3):
        async with Queue(bouncer.dsn(database)) as queue:
            await asyncio.gather(*(queue.enqueue("mail", {"n": n}) for n in range(40)))
    async with Queue(bouncer.direct(database)) as direct:
        assert (await direct.counts())["mail"][State.PENDING] == 120


async def test_who_denies_the_pooler_is_told(bouncer: Bouncer, database: str) -> None:
    async with Queue(bouncer.dsn(database), pgbouncer=False) as queue:

        async def until_it_breaks() -> None:
            for n in range(500):
                await asyncio.gather(*(queue.enqueue("mail", {"n": n}) for _ in range(8)))

        with pytest.raises(HowdahError, match="a pooler in transaction mode answers at"):
            await until_it_breaks()


async def test_a_direct_connection_is_not_taken_for_a_pooler(
    bouncer: Bouncer, database: str
) -> None:
    async with Queue(bouncer.direct(database)) as queue:
        await queue.enqueue("mail")
        assert queue.store.can_listen
        assert not queue.store.pooled


async def test_the_schema_can_be_installed_through_it(bouncer: Bouncer) -> None:
    name = "installed_through"
    bouncer.server.value(f"create database {name}")
    try:
        for made in (True, False, False):
            queue = Queue(bouncer.dsn(name))
            assert await queue.install() is made
            await queue.enqueue("mail")
            await queue.close()
    finally:
        bouncer.server.value(f"drop database {name} with (force)")


def test_sync_programs_and_the_command_line(bouncer: Bouncer, database: str) -> None:
    with SyncQueue(bouncer.dsn(database)) as queue:
        ids = [queue.enqueue("mail", {"n": n}).id for n in range(10)]
        assert len(queue.claim(["mail"], 10, worker_id="me")) == 10
    cli = Cli(bouncer.dsn(database))
    for id in ids:
        assert cli.json("show", id)["status"] == "claimed"
    cli.ok("stats")
    cli.ok("cancel", *ids)


@pytest.mark.parametrize("how", ["option", "environment"])
def test_the_worker_command_takes_a_listen_dsn(bouncer: Bouncer, database: str, how: str) -> None:
    direct = bouncer.direct(database)
    options = ["--listen-dsn", direct] if how == "option" else []
    more = {} if how == "option" else {"HOWDAH_LISTEN_DSN": direct}
    with started(
        *("worker", "tests.pgbouncer.app:queue", "--poll", "300d", *options),
        cwd=ROOT,
        HOWDAH_DSN=bouncer.dsn(database),
        **more,
    ) as worker:
        assert worker.stderr
        said = ""
        while "worker.started" not in said:
            line = worker.stderr.readline()
            assert line, f"the worker ended: {said}"
            said += line
        assert "store.pooled" in said
        assert "listens=True" in said
        with SyncQueue(bouncer.direct(database)) as queue:
            id = queue.enqueue("double", {"n": 21}).id
            until_true(lambda: queue.get(id).status is State.COMPLETED, "woken, and done")
            assert queue.get(id).result == 42
