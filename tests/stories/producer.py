"""Producer: a process that hands over jobs in every way there is, and writes down what it heard.

    python -m tests.stories.producer NAME SEED PER_SECOND

Singly, as a stream, delayed, in a transaction of its own that commits or changes its mind,
and now and then something that must be refused. Runs until SIGTERM.
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

from howdah import BadInput, Draft, HowdahError
from tests.stories.history import FAILED, OK, ROLLED_BACK, UNKNOWN, Log
from tests.stories.jobs import queue

CONNECTION_ERRORS = (HowdahError, psycopg.Error, OSError)
PATIENCE = 15.0  # seconds for a driver that knows no patience of its own
TOO_LARGE = "x" * 300_000
PRIORITIES = (30, 100, 100, 100, 150)
KINDS = {"quick": 70, "slow": 10, "threaded": 8, "flaky": 8, "doomed": 4}


class Piece(NamedTuple):
    """A job to be handed over."""

    job_type: str
    data: dict[str, Any]
    priority: int
    delay: float | None = None

    def draft(self) -> Draft:
        return queue.draft(self.job_type, self.data, priority=self.priority, delay=self.delay)


class Producer:
    """Hands over one thing after another."""

    def __init__(self, name: str, seed: int) -> None:
        self.chance = random.Random(seed)
        self._log = Log(Path(os.environ["STORY_FOLDER"]), name)
        self._prefix = f"{name}-{os.getpid()}"
        self._made = 0
        self._ways: dict[Callable[[], Awaitable[None]], int] = {
            self.one: 50,
            self.stream: 15,
            self.delayed: 10,
            self.in_a_transaction: 10,
            self.rolled_back: 10,
            self.refused: 5,
        }

    async def step(self) -> bool:
        """Hand something over in one of the ways; returns whether there was no trouble."""
        (way,) = self.chance.choices(list(self._ways), list(self._ways.values()))
        try:
            async with asyncio.timeout(PATIENCE):
                await way()
        except CONNECTION_ERRORS:
            return False
        return True

    async def one(self) -> None:
        await self._hand_over([self._piece()])

    async def delayed(self) -> None:
        await self._hand_over([self._piece(delay=self.chance.uniform(0.05, 1.0))])

    async def stream(self) -> None:
        await self._hand_over([self._piece() for _ in range(self.chance.randint(2, 40))])

    async def _hand_over(self, pieces: Sequence[Piece]) -> None:
        asked = self._ask(pieces)
        try:
            if len(pieces) > 1:
                await queue.enqueue_many(piece.draft() for piece in pieces)
            else:
                job_type, data, priority, delay = pieces[0]
                await queue.enqueue(job_type, data, priority=priority, delay=delay)
        except BaseException:
            self._log.answer(asked, UNKNOWN)
            raise
        self._log.answer(asked, OK)

    async def in_a_transaction(self) -> None:
        pieces = [self._piece(), self._piece()]
        asked = self._ask(pieces)
        try:
            async with await self._own_connection() as own:
                await queue.enqueue_many((piece.draft() for piece in pieces), conn=own)
                await own.commit()
        except BaseException:
            self._log.answer(asked, UNKNOWN)
            raise
        self._log.answer(asked, OK)

    async def rolled_back(self) -> None:
        pieces = [self._piece(), self._piece()]
        self._log.answer(self._ask(pieces), ROLLED_BACK)  # whatever happens, nobody commits it
        async with await self._own_connection() as own:
            await queue.enqueue_many((piece.draft() for piece in pieces), conn=own)
            await own.rollback()

    async def refused(self) -> None:
        piece = self._piece()
        asked = self._ask([piece])
        try:
            await queue.enqueue("quick", {"token": piece.data["token"], "too": TOO_LARGE})
        except BadInput:
            self._log.answer(asked, FAILED)

    def _ask(self, pieces: Sequence[Piece]) -> int:
        return self._log.ask("enqueue", tokens=[piece.data["token"] for piece in pieces])

    def _piece(self, delay: float | None = None) -> Piece:
        chance = self.chance
        self._made += 1
        data: dict[str, Any] = {"token": f"{self._prefix}-{self._made}"}
        (kind,) = chance.choices(list(KINDS), list(KINDS.values()))
        if kind == "slow":
            data["seconds"] = chance.uniform(0.05, 1.5)
        elif kind == "threaded":
            data["seconds"] = chance.uniform(0.01, 0.3)
        elif kind == "flaky":
            data["until"] = chance.randint(2, 4)
        return Piece(kind, data, chance.choice(PRIORITIES), delay)

    async def _own_connection(self) -> psycopg.AsyncConnection[Any]:
        return await psycopg.AsyncConnection.connect(
            os.environ["HOWDAH_DSN"], connect_timeout=5, target_session_attrs="read-write"
        )


async def main(name: str, seed: int, per_second: float) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    producer = Producer(name, seed)
    while not stop.is_set():
        fine = await producer.step()
        pause = producer.chance.expovariate(per_second if fine else 5.0)
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), pause)
    await queue.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
