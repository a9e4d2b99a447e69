"""Key bindings: what each key does on each kind of row.

main.py passes on the key and the row; actions.py changes the queue, details.py shows one thing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import UUID

from rich.console import Group

from howdah import observe
from howdah.observe import FailureGroup, TypeNow, WorkerNow
from howdah.top import actions, detail_text
from howdah.top.actions import Action
from howdah.top.details import DetailsScreen, Read
from howdah.top.live_screen import LiveScreen
from howdah.top.poller import Poller
from howdah.waits_for import WaitsFor

ActionMakers = dict[str, Callable[[], Awaitable[Action] | Action]]
Why = Callable[[], Awaitable[str]]


class KeyBindings:
    """Handles the keys of the main screen."""

    def __init__(self, screen: LiveScreen, poller: Poller) -> None:
        self._screen = screen
        self._queue = screen.queue
        self._poller = poller

    def on_type(self, verb: str, row: TypeNow) -> None:
        name = row.job_type

        async def why() -> str:
            return (await observe.why_type(self._queue.store, name)).sentence

        async def read() -> Group:
            overview = (await self._poller.poll()).overview
            types = overview.types if overview else []
            current = next((each for each in types if each.job_type == name), row)
            return detail_text.job_type(current, await why())

        makers: ActionMakers = {
            "requeue": lambda: actions.requeue_type(self._queue, name),
            "pause": lambda: actions.pause_or_resume(self._queue, name),
        }
        self._handle(verb, read, makers, why)

    def on_job(self, verb: str, id: UUID, job_type: str) -> None:
        read, why = self._readers(id)
        makers: ActionMakers = {
            "cancel": lambda: actions.cancel(self._queue, id, job_type),
            "requeue": lambda: actions.requeue(self._queue, id, job_type),
            "pause": lambda: actions.pause_or_resume(self._queue, job_type),
        }
        self._handle(verb, read, makers, why)

    def on_group(self, verb: str, group: FailureGroup) -> None:
        """Act on the whole group; the details are those of its newest job."""
        if verb == "details":
            self.on_job(verb, group.newest, group.job_type)
            return
        if verb == "requeue" and group.retrying:
            self._screen.show_answer(_retried_by_itself())
            return
        read, why = self._readers(group.newest)
        makers: ActionMakers = {
            "requeue": lambda: actions.requeue_group(self._queue, group),
            "pause": lambda: actions.pause_or_resume(self._queue, group.job_type),
        }
        self._handle(verb, read, makers, why)

    def on_worker(self, verb: str, row: WorkerNow) -> None:
        async def read() -> Group:
            snapshot = await self._poller.poll()
            current = next((each for each in snapshot.workers if each.id == row.id), row)
            assert snapshot.overview is not None
            return detail_text.worker(current, snapshot.overview.at)

        makers: ActionMakers = {"drain": lambda: actions.drain(self._queue, row.id)}
        self._handle(verb, read, makers, None)

    def _readers(self, id: UUID) -> tuple[Read, Why]:
        async def why() -> str:
            return (await self._queue.why(id)).sentence

        async def read() -> Group:
            history = await observe.job_history(self._queue.store, id)
            limited = history.job.waits_for in (WaitsFor.KEY, WaitsFor.LIMIT)
            return detail_text.job(history, await why() if limited else None)

        return read, why

    def _handle(self, verb: str, read: Read, makers: ActionMakers, why: Why | None) -> None:
        screen = self._screen
        if verb == "details":
            details = DetailsScreen(
                self._queue, screen.read_only, read, makers, why, self._poller.poll_now
            )
            screen.textual_app.push_screen(details)
        elif verb == "why" and why is not None:
            screen.show_answer(why())
        elif verb in makers:
            screen.perform(makers[verb])


async def _retried_by_itself() -> str:
    return "These jobs have attempts left. Workers retry them: there is nothing to requeue."
