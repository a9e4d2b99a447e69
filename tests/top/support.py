"""Support: `howdah top` without a terminal, on a real queue."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from rich.segment import Segment
from textual.pilot import Pilot

from howdah import JobContext, Queue
from howdah.top import pace
from howdah.top.app import Top
from howdah.top.heart import Heart
from tests.support.waiting import DEADLINE, eventually

NARROW, WIDE = (80, 24), (170, 40)


def whole_seconds() -> float:
    """A clock by which looks take no time, so that a busy machine does not slow them down."""
    return float(int(time.monotonic()))


@dataclass
class Shown:
    """What a person would see, and the keys."""

    app: Top
    pilot: Pilot[None]

    @property
    def segments(self) -> list[Segment]:
        strips = self.app.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]
        return [segment for strip in strips for segment in strip]

    @property
    def lines(self) -> list[str]:
        strips = self.app.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def line(self, part: str) -> str:
        """The one line with this in it."""
        (found,) = [line for line in self.lines if part in line]
        return found

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def sees(self, *parts: str) -> None:
        """Wait until all of this stands on the screen, as whoever looks at it does."""
        await eventually(
            lambda: all(part in self.text for part in parts), f"{parts} in\n{self.text}"
        )

    async def looks_until(self, *parts: str) -> None:
        """Look now, again and again, until all of this stands on the screen."""
        until = time.monotonic() + DEADLINE
        while not all(part in self.text for part in parts):
            assert time.monotonic() < until, f"never seen {parts}:\n{self.text}"
            await self.pilot.press("g")
            await self.pilot.pause(0.05)


@asynccontextmanager
async def top(
    queue: Queue,
    size: tuple[int, int] = NARROW,
    *,
    read_only: bool = False,
    clock: Callable[[], float] = whole_seconds,
) -> AsyncGenerator[Shown]:
    """Open `howdah top` on a queue, at a pace that a busy machine does not slow down."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pace, "TIMES", 0)
        heart = Heart(queue.store, clock)
        await heart.look()
        app = Top(queue, heart, read_only)
        async with app.run_test(size=size) as pilot:
            shown = Shown(app, pilot)
            await shown.sees("1 Types ")
            yield shown


class Gate:
    """A job that runs until the test lets it go on."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self.entered = asyncio.Event()

    def open(self) -> None:
        self._open.set()

    async def pass_through(self) -> None:
        self.entered.set()
        await self._open.wait()


def gated(queue: Queue, name: str, gate: Gate, percent: int = 0, stage: str | None = None) -> Any:
    """Register a job type that says how far it is, then waits at the gate."""

    @queue.job(name=name)
    async def wait(ctx: JobContext) -> None:  # pyright: ignore[reportUnusedFunction]
        await ctx.progress(percent, stage)
        await gate.pass_through()

    return wait


async def failed(queue: Queue, job_type: str, error: str = "ValueError: no") -> UUID:
    """Make one job that has failed."""
    handle = await queue.enqueue(job_type, max_attempts=1)
    (job,) = await queue.claim([job_type], worker_id="someone")
    await queue.fail(job, error)
    return handle.id


async def status(queue: Queue, id: UUID) -> str:
    return str((await queue.get(id)).status)


def has_status(queue: Queue, id: UUID, wanted: str) -> Callable[[], Awaitable[bool]]:
    async def reached() -> bool:
        return await status(queue, id) == wanted

    return reached
