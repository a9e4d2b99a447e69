"""A call without an answer in time fails, and its connection is not used again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from howdah import BadInput, Queue, Unreachable

CONNECTIONS = (
    "select count(*) from pg_stat_activity where datname = current_database() "
    "and pid <> pg_backend_pid() and state = 'idle'"
)


async def test_a_call_that_gets_no_answer_fails_and_the_next_one_works(
    queue: Queue, dsn: str
) -> None:
    async with Queue(dsn, call_timeout=timedelta(milliseconds=300)) as short_timeout:
        await short_timeout.enqueue("before")
        async with queue.store.acquire() as holder, holder.transaction():
            await holder.execute("lock table howdah.jobs_live in access exclusive mode")
            with pytest.raises(Unreachable, match=r"did not answer in time.* longer call_timeout"):
                await short_timeout.enqueue("blocked")
            assert await holder.fetchval(CONNECTIONS) == 0, "the connection was closed"
        await short_timeout.enqueue("after")
    assert {job.job_type for job in await queue.jobs()} >= {"before", "after"}


def test_a_call_timeout_of_zero_is_refused() -> None:
    with pytest.raises(BadInput, match="call_timeout must be longer than 0"):
        Queue("postgresql://nowhere/nothing", call_timeout=timedelta())
