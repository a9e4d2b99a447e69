"""Upkeep vacuums jobs_live when many rows are dead, and leaves it alone otherwise."""

from __future__ import annotations

import asyncio
import itertools
from datetime import timedelta
from urllib.parse import urlencode

import asyncpg
import pytest

from howdah import Queue
from howdah.store import Store
from howdah.store import upkeep as store_upkeep
from howdah.store.upkeep import LiveTable, live_table
from howdah.upkeep import vacuum as vacuum_module
from howdah.upkeep.upkeep import Upkeep
from howdah.upkeep.vacuum import Vacuum
from tests.store.roles import roles_in
from tests.support.databases import Databases
from tests.support.waiting import eventually

DEAD = 500
VACUUMS = "select pg_stat_get_vacuum_count('howdah.jobs_live'::regclass)"


@pytest.fixture(autouse=True)
def few_rows_and_clear_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vacuum_module, "DEAD_ROWS", DEAD)
    monkeypatch.setattr(vacuum_module, "SHARE", 1e9)
    monkeypatch.setattr(vacuum_module, "HELD_SHARE", 1e-9)


async def make_dead_rows(queue: Queue, rows: int = DEAD) -> None:
    before = await dead_rows(queue)
    await queue.store.fetch("alter table howdah.jobs_live set (autovacuum_enabled = off)")
    await queue.store.fetch(
        "insert into howdah.jobs_live (job_type) select 'mail' from generate_series(1, $1)", rows
    )
    await queue.store.fetch("delete from howdah.jobs_live")

    async def counted() -> bool:
        return await dead_rows(queue) == before + rows

    await eventually(counted, "the server's statistics know of the dead rows")


async def dead_rows(queue: Queue) -> int:
    table = await live_table(queue.store)
    assert table is not None
    return table.dead_rows


async def vacuums(queue: Queue) -> int:
    return await queue.store.fetchval(VACUUMS)


async def run(vacuum: Vacuum) -> None:
    await vacuum.start_if_due()
    await asyncio.gather(*vacuum.tasks)


async def test_dead_rows_are_vacuumed_again_and_again(queue: Queue) -> None:
    vacuum = Vacuum(queue.store)
    for number in (1, 2):
        await make_dead_rows(queue)
        await run(vacuum)
        assert await vacuums(queue) == number
        assert await dead_rows(queue) == 0


async def test_a_few_dead_rows_are_not(queue: Queue) -> None:
    await make_dead_rows(queue, DEAD - 1)
    await run(Vacuum(queue.store))
    assert await vacuums(queue) == 0


async def test_after_one_that_removed_little_the_pause_is_longer(queue: Queue, dsn: str) -> None:
    """An open transaction holds the dead rows. Reading them again and again would not help."""
    reader = await asyncpg.connect(dsn)
    try:
        async with reader.transaction(isolation="repeatable_read"):
            await reader.fetch("select from howdah.options")
            await make_dead_rows(queue)
            vacuum = Vacuum(queue.store)
            for _ in range(3):
                await run(vacuum)
            assert await vacuums(queue) == 1
            assert await dead_rows(queue) == DEAD
        await queue.store.fetch("select pg_current_xact_id()")
        await run(vacuum)
        assert await dead_rows(queue) == 0, "the transaction has ended, and so has the pause"
    finally:
        await reader.close()


@pytest.mark.parametrize("large", [True, False])
async def test_the_empty_end_of_a_large_table_is_returned_to_the_disk(
    large: bool, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_dead_rows(queue, 50_000)
    before = await live_table(queue.store)
    assert before is not None
    monkeypatch.setattr(vacuum_module, "LARGE", before.bytes - large)
    await run(Vacuum(queue.store))
    after = await live_table(queue.store)
    assert after is not None
    assert after.bytes == (0 if large else before.bytes)


async def test_a_wait_for_a_transaction_is_not_repeated(
    queue: Queue, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the rows are held by something else, the pause is kept, although transactions end."""
    snapshots = itertools.count(1)

    async def with_a_newer_snapshot(store: Store) -> LiveTable | None:
        table = await live_table(store)
        return table and table._replace(oldest_snapshot=next(snapshots))

    monkeypatch.setattr(store_upkeep, "live_table", with_a_newer_snapshot)
    reader = await asyncpg.connect(dsn)
    try:
        async with reader.transaction(isolation="repeatable_read"):
            await reader.fetch("select from howdah.options")
            await make_dead_rows(queue)
            vacuum = Vacuum(queue.store)
            for _ in range(4):
                await run(vacuum)
            assert await vacuums(queue) == 2
    finally:
        await reader.close()


async def test_a_round_of_upkeep_starts_it(queue: Queue) -> None:
    await make_dead_rows(queue)
    hour = timedelta(hours=1)
    upkeep = Upkeep(queue.store, "worker", every=hour, stale_after=hour)
    running = asyncio.create_task(upkeep.run())

    async def vacuumed() -> bool:
        return await vacuums(queue) == 1

    await eventually(vacuumed)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_upkeep_that_stops_leaves_no_task(queue: Queue) -> None:
    await make_dead_rows(queue)
    vacuum = Vacuum(queue.store)
    await vacuum.start_if_due()
    (task,) = vacuum.tasks
    await vacuum.stop()
    assert task.done()
    assert vacuum.tasks == []


async def test_a_worker_that_may_not_vacuum_leaves_it_to_autovacuum(databases: Databases) -> None:
    with roles_in(databases) as roles:
        (row,) = roles.worker.rows("select session_user as name")
        role = urlencode({"role": row["name"]})
        async with Queue(f"{roles.owner.dsn}&{role}") as queue:
            assert await queue.store.fetchval("select current_user") == row["name"]
            assert await live_table(queue.store) is None
            vacuum = Vacuum(queue.store)
            await vacuum.start_if_due()
            assert vacuum.tasks == []


async def test_a_worker_with_one_connection_goes_on_meanwhile(queue: Queue, dsn: str) -> None:
    await make_dead_rows(queue, 50_000)
    name = await queue.store.fetchval("select current_database()")
    for slow in ("vacuum_cost_delay = 100", "vacuum_cost_limit = 1"):
        await queue.store.fetch(f"alter database {name} set {slow}")
    async with Queue(dsn, connections=1) as single, asyncio.timeout(20):
        vacuum = Vacuum(single.store)
        await vacuum.start_if_due()
        (task,) = vacuum.tasks

        async def vacuuming() -> bool:
            return await queue.store.fetchval(
                "select exists (select from pg_stat_progress_vacuum "
                "where datname = current_database())"
            )

        await eventually(vacuuming)
        assert await single.counts() == {}
        assert not task.done()
        await vacuum.stop()
