"""Support: run `howdah top` without a terminal, on a real queue."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import Any
from uuid import UUID

import pytest
from rich.segment import Segment
from textual.pilot import Pilot

from howdah import JobContext, Queue
from howdah.observe import rest
from howdah.top.app import Top
from howdah.top.poller import Poller
from tests.support.waiting import eventually

NARROW, WIDE = (80, 24), (170, 40)


def whole_seconds() -> float:
    """A clock in whole seconds, so that a busy machine does not slow the polls down."""
    return float(int(time.monotonic()))


@dataclass
class TopView:
    """The text on the screen, and the keys."""

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
        """Return the only line that contains this."""
        (match,) = [line for line in self.lines if part in line]
        return match

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def wait_for(self, *parts: str) -> None:
        """Wait until all of this is on the screen."""
        await eventually(lambda: self._shows(parts), lambda: f"{parts} in\n{self.text}")

    async def refresh_until(self, *parts: str) -> None:
        """Press `g` again and again until all of this is on the screen."""

        async def shown_after_refresh() -> bool:
            if self._shows(parts):
                return True
            await self.pilot.press("g")
            await self.pilot.pause(0.05)
            return self._shows(parts)

        await eventually(shown_after_refresh, lambda: f"{parts} in\n{self.text}")

    def _shows(self, parts: Iterable[str]) -> bool:
        text = self.text
        return all(part in text for part in parts)


@asynccontextmanager
async def top(
    queue: Queue,
    size: tuple[int, int] = NARROW,
    *,
    read_only: bool = False,
    clock: Callable[[], float] = whole_seconds,
    unserved: timedelta = timedelta(days=1),
) -> AsyncGenerator[TopView]:
    """Open `howdah top` on a queue, without the pauses of the throttle.

    `unserved` is how long a job may wait before a missing worker is a problem. By default no
    test is slow enough to see that problem.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rest, "FACTOR", 0)
        patch.setattr(import_module("howdah.observe.problems"), "UNSERVED", unserved)
        poller = Poller(queue.store, clock)
        await poller.poll()
        app = Top(queue, poller, read_only)
        async with app.run_test(size=size) as pilot:
            view = TopView(app, pilot)
            await view.wait_for("1 Types ")
            yield view


class Gate:
    """Keeps a job running until the test opens it."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self.entered = asyncio.Event()

    def open(self) -> None:
        self._open.set()

    async def enter_and_wait(self) -> None:
        self.entered.set()
        await self._open.wait()


def register_gated(
    queue: Queue, name: str, gate: Gate, percent: int = 0, stage: str | None = None
) -> Any:
    """Register a job type that reports its progress, then waits for the gate."""

    @queue.job(name=name)
    async def wait(ctx: JobContext) -> None:  # pyright: ignore[reportUnusedFunction]
        await ctx.progress(percent, stage)
        await gate.enter_and_wait()

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
