"""enqueue_many returns the count, or ids or handles if the caller asks for them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import asyncpg
import pytest

from howdah import BadInput, Draft, Handle, Queue, SyncQueue


async def test_ids_are_returned_in_the_order_of_the_stream(queue: Queue) -> None:
    drafts = [queue.draft("mail", {"n": n}, delay=60 if n % 3 else None) for n in range(30)]

    async def stream() -> AsyncGenerator[Draft]:
        for draft in drafts:
            yield draft

    ids = await queue.enqueue_many(stream(), returning="ids")
    assert ids == [draft.id for draft in drafts]
    assert [(await queue.get(id)).data["n"] for id in ids[:5]] == [0, 1, 2, 3, 4]
    assert await queue.enqueue_many([queue.draft("mail")]) == 1
    assert await queue.enqueue_many([queue.draft("mail")], returning="count") == 1
    assert await queue.enqueue_many([], returning="ids") == []


async def test_handles_return_the_results(queue: Queue) -> None:
    @queue.job
    async def double(n: int) -> int:
        return 2 * n

    handles = await double.enqueue_many(({"n": n} for n in range(5)), returning="handles")
    assert all(isinstance(handle, Handle) for handle in handles)
    async with queue.worker():
        assert [await handle.result(timeout=20) for handle in handles] == [0, 2, 4, 6, 8]
    assert len(await queue.enqueue_many([double.draft(n=1)], returning="handles")) == 1


async def test_ids_are_returned_in_the_transaction_of_the_caller_too(
    queue: Queue, dsn: str
) -> None:
    connection = await asyncpg.connect(dsn)
    drafts = [queue.draft("mail") for _ in range(3)]
    ids = await queue.enqueue_many(drafts, conn=connection, returning="ids")
    assert ids == [draft.id for draft in drafts]
    await connection.close()


def test_a_sync_queue_returns_the_same(dsn: str) -> None:
    with SyncQueue(dsn) as queue:

        @queue.job
        def double(n: int) -> int:
            return 2 * n

        drafts = [double.draft(n=n) for n in range(3)]
        assert queue.enqueue_many(drafts, returning="ids") == [draft.id for draft in drafts]
        handles = double.enqueue_many([{"n": 4}, {"n": 5}], returning="handles")
        with queue.worker():
            assert [handle.result(timeout=20) for handle in handles] == [8, 10]


@pytest.mark.parametrize("returning", ["id", "", None, True, ["ids"], 1])
async def test_a_bad_returning_is_refused_before_the_stream_is_read(
    queue: Queue, returning: Any
) -> None:
    @queue.job
    async def mail() -> None: ...

    read: list[int] = []
    drafts = (read.append(n) or queue.draft("mail") for n in range(3))
    with pytest.raises(BadInput, match='returning must be "count", "ids" or "handles", not '):
        await queue.enqueue_many(drafts, returning=returning)
    with pytest.raises(BadInput, match='returning must be "count", "ids" or "handles", not '):
        await mail.enqueue_many([{}], returning=returning)
    assert read == []


async def test_an_error_in_the_stream_is_raised_and_nothing_is_enqueued(queue: Queue) -> None:
    def drafts() -> Any:
        yield queue.draft("mail")
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        await queue.enqueue_many(drafts(), returning="ids")
    assert await queue.counts() == {}
