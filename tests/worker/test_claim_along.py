"""A worker whose jobs wait for a slot gets the next ones with the answer to its endings."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from howdah import Queue, State
from howdah.errors import Unreachable
from howdah.job import Claim
from howdah.outcomes import Ending
from howdah.store import settle as store_settle
from tests.support.waiting import eventually

JOBS = 300
SPLIT = 20  # endings that are written in two halves, in these tests
# each job that joins the line gets a place before those of all others
JOIN_LONG_AGO = b"""
    create function join_long_ago() returns trigger language plpgsql as $$ begin
        new.ready_at := timestamptz '2020-01-01 00:00Z' - new.arrival * interval '1 second';
        return new;
    end $$;
    create trigger join_long_ago before update on howdah.jobs_live
    for each row when (old.ready_at is null and new.ready_at is not null)
    execute function join_long_ago();
"""


class Calls:
    """Counts the calls of complete_and_claim; the first answer that brings jobs may get lost."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, lose: bool = False) -> None:
        self.brought = 0
        self.lost = 0
        self._lose = lose
        self._call = store_settle.complete_and_claim
        monkeypatch.setattr(store_settle, "complete_and_claim", self)

    async def __call__(self, *args: Any) -> tuple[set[Any], list[Claim]]:
        moved, claims = await self._call(*args)
        if self._lose and claims and not self.lost:
            self.lost = len(claims)
            raise Unreachable("the answer was lost")
        self.brought += len(claims)
        return moved, claims


async def drain(queue: Queue, **rule: Any) -> tuple[list[int], int]:
    """Run many jobs by one worker; returns their numbers, and how many ran at once at most."""
    ran: list[int] = []
    running = most = 0

    @queue.job(name="mail", **rule)
    async def mail(n: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        ran.append(n)

    await mail.enqueue_many([{"n": n} for n in range(JOBS)])
    async with queue.worker():
        await eventually(lambda: len(ran) >= JOBS, "all have run")

        async def all_ended() -> bool:
            return not await queue.jobs(job_type="mail", status=State.PENDING)

        await eventually(all_ended, "all have ended")
    return ran, most


async def test_the_jobs_of_a_limit_come_with_the_answer(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls(monkeypatch)
    queue.limit("api", at_once=5)
    ran, most = await drain(queue, limit="api")
    assert sorted(ran) == list(range(JOBS))
    assert most <= 5
    assert calls.brought > 0


async def test_a_worker_that_has_not_just_seen_the_line_claims_from_it(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls(monkeypatch)
    monkeypatch.setattr("howdah.claim.loop.LOOK_AGAIN", 0.0)
    queue.limit("api", at_once=5)
    ran, _ = await drain(queue, limit="api")
    assert sorted(ran) == list(range(JOBS))
    assert calls.brought == 0


async def test_plain_jobs_never_need_the_call(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls(monkeypatch)
    ran, _ = await drain(queue)
    assert sorted(ran) == list(range(JOBS))
    assert calls.brought == 0


async def test_jobs_whose_answer_was_lost_are_found(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls(monkeypatch, lose=True)
    queue.limit("api", at_once=5)
    ran, most = await drain(queue, limit="api")
    assert sorted(ran) == list(range(JOBS))
    assert most <= 5
    assert calls.lost > 0


class Halves:
    """Records which endings are sent at the same time, and which are written twice."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, fail: bool = False) -> None:
        self.most = 0
        self.failed = False
        self.written: list[Any] = []
        self._under_way = 0
        self._fail = fail
        self._complete = store_settle.complete
        self._complete_and_claim = store_settle.complete_and_claim
        monkeypatch.setattr("howdah.settle.SPLIT", SPLIT)
        monkeypatch.setattr(store_settle, "complete", self.complete)
        monkeypatch.setattr(store_settle, "complete_and_claim", self.complete_and_claim)

    async def complete(
        self, store: Any, worker_id: str, endings: Sequence[Ending], *args: Any
    ) -> set[Any]:
        moved = await self._complete(store, worker_id, endings, *args)
        self.written += [ending.claim.id for ending in endings]
        return moved

    async def complete_and_claim(
        self, store: Any, worker_id: str, endings: Sequence[Ending], *args: Any
    ) -> tuple[set[Any], list[Claim]]:
        self._under_way += 1
        self.most = max(self.most, self._under_way)
        try:
            for _ in range(10):
                await asyncio.sleep(0)  # another call may begin
            if self._fail and self._under_way == 2 and not self.failed:
                self.failed = True
                raise Unreachable("it was not sent")
            answer = await self._complete_and_claim(store, worker_id, endings, *args)
        finally:
            self._under_way -= 1
        self.written += [ending.claim.id for ending in endings]
        return answer


async def test_two_halves_of_a_batch_are_written_beside_each_other(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    halves = Halves(monkeypatch)
    queue.limit("api", at_once=2 * SPLIT)
    ran, most = await drain(queue, limit="api")
    assert sorted(ran) == list(range(JOBS))
    assert most <= 2 * SPLIT
    assert halves.most == 2


async def test_a_half_that_failed_is_written_again_and_the_other_is_not(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    halves = Halves(monkeypatch, fail=True)
    queue.limit("api", at_once=2 * SPLIT)
    ran, _ = await drain(queue, limit="api")
    assert sorted(ran) == list(range(JOBS))
    assert halves.failed
    assert len(halves.written) == len(set(halves.written)) == JOBS


async def test_a_worker_looks_for_what_its_endings_have_put_in_line(
    queue: Queue, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A place in line may be before the marks: it is taken some time before the commit."""
    monkeypatch.setattr("howdah.claim.loop.LOOK_AGAIN", 0.0)
    monkeypatch.setattr("howdah.claim.line.WHOLE_EVERY", 3600.0)
    monkeypatch.setattr("howdah.settle.LONG", 1)
    with psycopg.connect(dsn) as connection:
        connection.execute(JOIN_LONG_AGO)
    ran: list[str] = []

    @queue.job(name="mail", key="key")
    async def mail(key: str) -> None:
        ran.append(key)

    await mail.enqueue_many([{"key": f"{n % 10}"} for n in range(JOBS)])
    async with queue.worker(poll=timedelta(hours=1)):
        await eventually(lambda: len(ran) >= JOBS, "all have run")


async def test_a_plain_job_is_not_kept_waiting(queue: Queue) -> None:
    """A worker whose few slots are all used by jobs of a limit looks at the line, too."""
    queue.limit("api", at_once=5)
    began = asyncio.Event()
    calls = 0

    @queue.job(limit="api")
    async def call(n: int) -> None:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0)
        if not began.is_set():
            await call.enqueue(n)

    @queue.job
    async def mail() -> None:
        began.set()

    async with queue.worker(concurrency=2):
        await call.enqueue_many([{"n": n} for n in range(50)])
        await eventually(lambda: calls > 50, "the limit is in use")
        await mail.enqueue()
        await eventually(began.is_set, "the plain job has run")
