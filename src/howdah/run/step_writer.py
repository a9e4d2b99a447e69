"""Step writer: store the steps of running jobs, and read those of earlier runs.

Comes after   steps.py         which asks, from any thread
Comes before  store/steps.py   which makes the calls

While one batch is under way the next one collects, so steps that end together are written together.
Each step waits for the disk, because its result must not be lost. When the database is away, steps
are kept and sent again: a step that is stored already stays as it is. A worker without steps has no
task for this.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress

import msgspec

from howdah.errors import StaleLease
from howdah.growing_pause import GrowingPause
from howdah.job import Claim
from howdah.run.steps import Answer
from howdah.safe_logging import log_named
from howdah.steps import AwaitSignal, LoadSteps, Request, SaveStep, StoredStep
from howdah.store import Store
from howdah.store import steps as store_steps
from howdah.store.batches import write_in_parts
from howdah.store.errors import transient

_log = log_named("howdah.run")

BATCH = 1000  # requests


class _Item(msgspec.Struct, gc=False):
    claim: Claim
    request: Request
    answer: Answer


_Answers = list[list[StoredStep] | None]  # None: the lease is stale
_Write = Callable[[Sequence[_Item]], Awaitable[_Answers]]


class StepWriter:
    """Answers the requests of one worker's handlers. Must be built in its event loop."""

    def __init__(self, store: Store, worker_id: str) -> None:
        self._store = store
        self._worker_id = worker_id
        self._waiting: list[_Item] = []
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._loop = asyncio.get_running_loop()

    def submit(self, claim: Claim, request: Request) -> Answer:
        """Answer a request, soon. Safe in any thread."""
        answer: Answer = Future()
        item = _Item(claim, request, answer)
        try:
            self._loop.call_soon_threadsafe(self._add, item)
        except RuntimeError:  # the loop is closed
            self._refuse_all([item])
        return answer

    async def close(self) -> None:
        """Stop. The steps that are not stored run again in another attempt."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._refuse_all(self._waiting)

    def _refuse_all(self, items: list[_Item]) -> None:
        for item in items:
            _refuse(item, StaleLease(f"job {item.claim.id}: the worker has stopped"))

    def _add(self, item: _Item) -> None:
        if self._closed:
            self._refuse_all([item])
            return
        self._waiting.append(item)
        if self._task is None:
            self._task = self._loop.create_task(self._run())

    async def _run(self) -> None:
        """Answer what waits, batch by batch."""
        pause = GrowingPause(0.05, 5.0, self._store.reachable)
        while self._waiting:
            items, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
            try:
                await self._answer(items)
                pause.reset()
            except asyncio.CancelledError:
                self._refuse_all(items)
                raise
            except Exception as error:
                left = [item for item in items if not item.answer.done()]
                if not transient(error):
                    for item in left:
                        _refuse(item, error)
                    continue
                self._waiting = left + self._waiting
                seconds = pause.next()
                _log.warning(
                    "steps.waiting steps=%d retry_in=%.2fs error=%s", len(left), seconds, error
                )
                await self._store.reachable.wait(seconds)
        self._task = None

    async def _answer(self, items: list[_Item]) -> None:
        """Answer a batch, by kind; the kinds at the same time, because each waits for the disk."""
        answers = await asyncio.gather(
            self._load([item for item in items if isinstance(item.request, LoadSteps)]),
            self._write([item for item in items if isinstance(item.request, SaveStep)], self._save),
            self._write(
                [item for item in items if isinstance(item.request, AwaitSignal)], self._await
            ),
            return_exceptions=True,
        )
        if errors := [answer for answer in answers if answer is not None]:
            raise min(errors, key=transient)  # an error that waiting cannot heal comes first

    async def _load(self, items: list[_Item]) -> None:
        if items:
            steps = await store_steps.load(self._store, list({item.claim.id for item in items}))
            for item in items:
                _set(item, steps.get(item.claim.id, []))

    async def _write(self, items: list[_Item], write: _Write) -> None:
        if items:
            await write_in_parts(items, write, _written, _refused)

    async def _save(self, items: Sequence[_Item]) -> _Answers:
        steps = [(i.claim, i.request) for i in items if isinstance(i.request, SaveStep)]
        stored = await store_steps.save(self._store, self._worker_id, steps)
        return [[] if n in stored else None for n in range(len(items))]

    async def _await(self, items: Sequence[_Item]) -> _Answers:
        waits = [(i.claim, i.request) for i in items if isinstance(i.request, AwaitSignal)]
        steps = await store_steps.await_signals(self._store, self._worker_id, waits)
        return [[steps[n]] if n in steps else None for n in range(len(items))]


def _written(items: Sequence[_Item], answers: _Answers) -> None:
    for item, steps in zip(items, answers, strict=True):
        if steps is None:
            claim = item.claim
            _refuse(item, StaleLease(f"job {claim.id} is no longer this handler's: stop working"))
        else:
            _set(item, steps)


async def _refused(item: _Item, error: Exception) -> None:
    _refuse(item, error)


def _set(item: _Item, steps: list[StoredStep]) -> None:
    if not item.answer.done():  # the handler may have given up
        item.answer.set_result(steps)


def _refuse(item: _Item, error: BaseException) -> None:
    if not item.answer.done():
        item.answer.set_exception(error)
