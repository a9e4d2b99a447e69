"""Wants: what each key means over each kind of row.

Comes after   main.py, which hears the keys
Comes before  deeds.py and details.py, which do and tell
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import UUID

from rich.console import Group

from howdah import observe
from howdah.observe import FailureGroup, TypeNow, WorkerNow
from howdah.top import about, deeds
from howdah.top.board import Board
from howdah.top.deeds import Deed
from howdah.top.details import Details, Read
from howdah.top.heart import Heart

Makers = dict[str, Callable[[], Awaitable[Deed] | Deed]]
Why = Callable[[], Awaitable[str]]


class Wants:
    """Answers keys on behalf of a screen."""

    def __init__(self, board: Board, heart: Heart) -> None:
        self._board = board
        self._queue = board.queue
        self._heart = heart

    def of_type(self, verb: str, row: TypeNow) -> None:
        name = row.job_type

        async def why() -> str:
            return (await observe.why_type(self._queue.store, name)).sentence

        async def read() -> Group:
            seen = (await self._heart.look()).overview
            now = next((one for one in seen.types if one.job_type == name), row) if seen else row
            return about.job_type(now, await why())

        makers: Makers = {
            "requeue": lambda: deeds.requeue_type(self._queue, name),
            "pause": lambda: deeds.pause_or_resume(self._queue, name),
        }
        self._answer(verb, read, makers, why)

    def of_job(self, verb: str, id: UUID, job_type: str) -> None:
        read, why = self._reading(id)
        makers: Makers = {
            "cancel": lambda: deeds.cancel(self._queue, id, job_type),
            "requeue": lambda: deeds.requeue(self._queue, id, job_type),
            "pause": lambda: deeds.pause_or_resume(self._queue, job_type),
        }
        self._answer(verb, read, makers, why)

    def of_group(self, verb: str, group: FailureGroup) -> None:
        """Do it to the whole group; its details are those of the newest job."""
        if verb == "details":
            self.of_job(verb, group.newest, group.job_type)
            return
        if verb == "requeue" and group.retrying:
            self._board.answer(_retried_anyway())
            return
        read, why = self._reading(group.newest)
        makers: Makers = {
            "requeue": lambda: deeds.requeue_group(self._queue, group),
            "pause": lambda: deeds.pause_or_resume(self._queue, group.job_type),
        }
        self._answer(verb, read, makers, why)

    def of_worker(self, verb: str, row: WorkerNow) -> None:
        async def read() -> Group:
            seen = await self._heart.look()
            now = next((one for one in seen.workers if one.id == row.id), row)
            assert seen.overview is not None
            return about.worker(now, seen.overview.at)

        makers: Makers = {"drain": lambda: deeds.drain(self._queue, row.id)}
        self._answer(verb, read, makers, None)

    def _reading(self, id: UUID) -> tuple[Read, Why]:
        async def why() -> str:
            return (await self._queue.why(id)).sentence

        async def read() -> Group:
            return about.job(await observe.life(self._queue.store, id))

        return read, why

    def _answer(self, verb: str, read: Read, makers: Makers, why: Why | None) -> None:
        board = self._board
        if verb == "details":
            details = Details(self._queue, board.read_only, read, makers, why, self._heart.hurry)
            board.around.push_screen(details)
        elif verb == "why" and why is not None:
            board.answer(why())
        elif verb in makers:
            board.act(makers[verb])


async def _retried_anyway() -> str:
    return "These jobs have attempts left and are retried by themselves: nothing to requeue."
