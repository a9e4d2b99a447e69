"""Without LISTEN, polling alone finds jobs and results."""

from __future__ import annotations

from datetime import timedelta

from howdah import Queue


async def test_a_queue_that_cannot_listen_works_by_polling(dsn: str) -> None:
    async with Queue(dsn, pgbouncer=True) as queue:
        assert not queue.store.can_listen

        @queue.job
        async def double(n: int) -> int:
            return n * 2

        async with queue.worker(poll=timedelta(milliseconds=50)):
            handle = await double.enqueue(n=4)
            assert await handle.result(timeout=20) == 8
        listening = await queue.store.fetch(
            "select query from pg_stat_activity where datname = current_database() "
            "and query ilike 'listen %'"
        )
        assert listening == []
