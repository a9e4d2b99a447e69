"""Producer: a process that enqueues jobs in every way, and records each answer.

    python -m tests.stories.producer NAME SEED PER_SECOND

It enqueues single jobs, streams and delayed jobs, in transactions that commit or roll back, by
plain INSERT, and sometimes a job that must be refused. A third of the jobs have a key, a limit, a
unique key or an expiry. It runs until SIGTERM.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from psycopg.types.json import Jsonb

from howdah import BadInput, Draft, HowdahError
from tests.stories.effect_jobs import queue
from tests.stories.history import FAILED, OK, ROLLED_BACK, UNKNOWN, Log

CONNECTION_ERRORS = (HowdahError, psycopg.Error, OSError)
TIMEOUT = 15.0  # seconds, for a driver that has no timeout of its own
TOO_LARGE = "x" * 300_000
PRIORITIES = (30, 100, 100, 100, 150)
KINDS = {"quick": 70, "slow": 10, "threaded": 8, "flaky": 8, "doomed": 4}

# of limited_jobs.py and effect_jobs.py: how many, beside the hundred above, and their parameters
LIMITED_KINDS = {
    "write": (8, ()),
    "write_in_thread": (4, ()),
    "write_in_order": (4, ("account",)),
    "book": (8, ("account", "seconds", "until")),
    "post": (4, ("account", "until")),
    "book_in_thread": (4, ("account", "seconds", "until")),
    "of_tenant": (8, ("tenant", "seconds", "until")),
    "call": (8, ("seconds",)),
    "call_of_tenant": (4, ("tenant", "seconds", "until")),
    "rated": (6, ("until",)),
    "rated_each": (4, ("tenant", "seconds")),
    "once": (4, ("order", "seconds", "until")),
    "once_until_started": (3, ("order", "seconds")),
    "brief": (4, ("tenant", "seconds")),
}
VALUES: dict[str, Callable[[random.Random], object]] = {
    "account": lambda rng: f"account-{rng.randint(1, 4)}",
    "tenant": lambda rng: f"tenant-{rng.randint(1, 3)}",
    "order": lambda rng: rng.randint(1, 4),
    "seconds": lambda rng: rng.uniform(0, 0.25),
    "until": lambda rng: 2 if rng.random() < 0.1 else 1,
}
WEIGHTS = {**KINDS, **{kind: weight for kind, (weight, _) in LIMITED_KINDS.items()}}
KEYED = [kind for kind in LIMITED_KINDS if {"account", "tenant"} & set(LIMITED_KINDS[kind][1])]
INSERT = """
    insert into howdah.jobs (job_type, key, data, priority, max_attempts)
    values (%s, %s, %s, %s, 50)
"""


class NewJob(NamedTuple):
    """A job to enqueue."""

    job_type: str
    data: dict[str, Any]
    priority: int
    delay: float | None = None

    def draft(self) -> Draft:
        return queue.draft(self.job_type, self.data, priority=self.priority, delay=self.delay)


class Producer:
    """Enqueues one thing after another."""

    def __init__(self, name: str, seed: int) -> None:
        self.rng = random.Random(seed)
        self._log = Log(Path(os.environ["STORY_FOLDER"]), name)
        self._prefix = f"{name}-{os.getpid()}"
        self._made = 0
        self._ways: dict[Callable[[], Awaitable[None]], int] = {
            self.single: 50,
            self.stream: 15,
            self.delayed: 10,
            self.in_a_transaction: 10,
            self.inserted: 10,
            self.stream_of_a_key: 3,
            self.rolled_back: 10,
            self.refused: 5,
        }

    async def step(self) -> bool:
        """Enqueue in one of the ways; returns whether there was no error."""
        (way,) = self.rng.choices(list(self._ways), list(self._ways.values()))
        try:
            async with asyncio.timeout(TIMEOUT):
                await way()
        except CONNECTION_ERRORS:
            return False
        return True

    async def single(self) -> None:
        await self._enqueue([self._new_job()])

    async def delayed(self) -> None:
        await self._enqueue([self._new_job(delay=self.rng.uniform(0.05, 1.0))])

    async def stream(self) -> None:
        await self._enqueue([self._new_job() for _ in range(self.rng.randint(2, 40))])

    async def stream_of_a_key(self) -> None:
        """Enqueue more jobs of an ordered key than one claim would let through."""
        jobs = [self._new_job(kind="post") for _ in range(self.rng.randint(20, 60))]
        for job in jobs:
            job.data["account"] = jobs[0].data["account"]
        await self._enqueue(jobs)

    async def _enqueue(self, jobs: Sequence[NewJob]) -> None:
        asked = self._ask(jobs)
        try:
            if len(jobs) > 1:
                existed = await self._enqueue_many(jobs)
            else:
                job_type, data, priority, delay = jobs[0]
                handle = await queue.enqueue(job_type, data, priority=priority, delay=delay)
                existed = {data["token"]: str(handle.id)} if handle.existed else {}
        except BaseException:
            self._log.answer(asked, UNKNOWN)
            raise
        self._log.answer(asked, OK, existed=existed)

    async def _enqueue_many(self, jobs: Sequence[NewJob], conn: Any = None) -> dict[str, str]:
        """Enqueue a stream; returns the jobs that had the unique keys of others, by their token."""
        drafts = [job.draft() for job in jobs]
        if not any("order" in job.data for job in jobs):
            await queue.enqueue_many(drafts, conn=conn)
            return {}
        handles = await queue.enqueue_many(drafts, conn=conn, returning="handles")
        return {
            job.data["token"]: str(handle.id)
            for job, handle in zip(jobs, handles, strict=True)
            if handle.existed
        }

    async def in_a_transaction(self) -> None:
        jobs = [self._new_job(), self._new_job()]
        asked = self._ask(jobs)
        try:
            async with await self._own_connection() as connection:
                existed = await self._enqueue_many(jobs, connection)
                await connection.commit()
        except BaseException:
            self._log.answer(asked, UNKNOWN)
            raise
        self._log.answer(asked, OK, existed=existed)

    async def inserted(self) -> None:
        """Insert jobs with the same key, as another program does."""
        kind, value = self.rng.choice(KEYED), str(self.rng.randint(1, 3))
        jobs = [self._new_job(kind=kind) for _ in range(self.rng.randint(1, 3))]
        asked = self._ask(jobs)
        try:
            async with await self._own_connection() as connection:
                for job in jobs:
                    (field,) = {"account", "tenant"} & set(job.data)
                    job.data[field] = f"{field}-{value}"
                    row = job.job_type, job.data[field], Jsonb(job.data), job.priority
                    await connection.execute(INSERT, row)
                await connection.commit()
        except BaseException:
            self._log.answer(asked, UNKNOWN)
            raise
        self._log.answer(asked, OK)

    async def rolled_back(self) -> None:
        jobs = [self._new_job(), self._new_job()]
        self._log.answer(self._ask(jobs), ROLLED_BACK)  # whatever happens, it is not committed
        async with await self._own_connection() as connection:
            await self._enqueue_many(jobs, connection)
            await connection.rollback()

    async def refused(self) -> None:
        job = self._new_job()
        asked = self._ask([job])
        try:
            await queue.enqueue("quick", {"token": job.data["token"], "too": TOO_LARGE})
        except BadInput:
            self._log.answer(asked, FAILED)

    def _ask(self, jobs: Sequence[NewJob]) -> int:
        return self._log.ask("enqueue", tokens=[job.data["token"] for job in jobs])

    def _new_job(self, delay: float | None = None, kind: str | None = None) -> NewJob:
        rng = self.rng
        self._made += 1
        data: dict[str, Any] = {"token": f"{self._prefix}-{self._made}"}
        if kind is None:
            (kind,) = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))
        if kind in LIMITED_KINDS:
            data |= {name: VALUES[name](rng) for name in LIMITED_KINDS[kind][1]}
        elif kind == "slow":
            data["seconds"] = rng.uniform(0.05, 1.5)
        elif kind == "threaded":
            data["seconds"] = rng.uniform(0.01, 0.3)
        elif kind == "flaky":
            data["until"] = rng.randint(2, 4)
        return NewJob(kind, data, rng.choice(PRIORITIES), delay)

    async def _own_connection(self) -> psycopg.AsyncConnection[Any]:
        return await psycopg.AsyncConnection.connect(
            os.environ["HOWDAH_DSN"], connect_timeout=5, target_session_attrs="read-write"
        )


async def main(name: str, seed: int, per_second: float) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    producer = Producer(name, seed)
    while not stop.is_set():
        succeeded = await producer.step()
        pause = producer.rng.expovariate(per_second if succeeded else 5.0)
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), pause)
    await queue.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
