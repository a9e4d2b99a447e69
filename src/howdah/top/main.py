"""Main: the main screen with the headline, four panes and the keys.

poller.py reads what it shows. A key that is pressed on a row arrives here as `ActionRequested`,
with the verb and the row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

from rich.console import Group
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import ContentSwitcher, Footer, Input, Static

from howdah.checks.queue_names import DEFAULT_QUEUE
from howdah.client.queue import Queue
from howdah.observe import TypeNow, WorkerNow
from howdah.states import State
from howdah.text.printable import one_line
from howdah.top import (
    detail_text,
    formatting,
    headline,
    hints,
    table_failures,
    table_running,
    table_types,
)
from howdah.top.details import DetailsScreen
from howdah.top.key_bindings import KeyBindings
from howdah.top.live_screen import LiveScreen
from howdah.top.pane import AnyPane, Pane, Tab
from howdah.top.poller import Poller, Snapshot
from howdah.top.table import Table
from howdah.top.table_failures import FailureRow, FailuresTable
from howdah.top.table_running import RunningJob, RunningTable
from howdah.top.table_types import TypesTable
from howdah.top.table_workers import WorkersTable, types_of

Row = TypeVar("Row")


class MainScreen(LiveScreen):
    """The first screen; leaving it ends the application."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", key_display="/"),
        *(Binding(str(n), f"pane({n})", show=False) for n in (1, 2, 3, 4)),
        Binding("exclamation_mark", "problems", "Problems", show=False),
        Binding("escape", "no_filter", "Show all", show=False),
        Binding("q", "app.quit", "Quit"),
    ]

    def __init__(self, queue: Queue, poller: Poller, read_only: bool) -> None:
        super().__init__(queue, read_only)
        self._poller = poller
        self._key_bindings = KeyBindings(self, poller)
        self._types_pane = Pane("Types", TypesTable(read_only))
        self._running_pane = Pane("Running", RunningTable(read_only))
        self._workers_pane = Pane("Workers", WorkersTable(read_only))
        self._failures_pane = Pane("Failures", FailuresTable(read_only))
        self._panes: list[AnyPane] = [
            self._types_pane,
            self._running_pane,
            self._workers_pane,
            self._failures_pane,
        ]
        self._tabs = [Tab(n, pane.title) for n, pane in enumerate(self._panes, 1)]
        self._shown_pane = 0
        self._headline = Static(markup=False)
        self._problem = Static(markup=False)
        self._filtered = Static(id="filtered", markup=False)
        self._filter = Input(
            placeholder="a part of a job type, or a queue", id="filter", compact=True
        )

    def compose(self) -> ComposeResult:
        yield self._headline
        yield self._problem
        with Horizontal(id="tabs"):
            yield from self._tabs
            yield self._filtered
        with ContentSwitcher(initial=self._panes[0].id):
            yield from self._panes
        yield self._filter
        yield self.message_line
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self._filter.display = False
        self.action_pane(1)

    # ── poll and show ─────────────────────────────────────────────────────────────────────

    async def poll(self) -> float:
        failures_shown = self.pane is self._failures_pane
        await self._poller.poll(failures_shown)
        self.show_snapshot()
        return self._poller.wait(failures_shown)

    def poll_now(self) -> None:
        self._poller.poll_now()
        super().poll_now()

    def on_resize(self, _event: events.Resize) -> None:
        self.show_snapshot()

    def show_snapshot(self) -> None:
        """Show the last snapshot."""
        snapshot, width = self._poller.snapshot, self.size.width
        self._headline.update(
            headline.summary_line(snapshot, self._poller.slow_wait, width, self.read_only)
        )
        self._problem.update(headline.problem_line(snapshot, width))
        text = self._filter.value.strip()
        self._filtered.update(Text(f"/{one_line(text)}" if text else "", style=formatting.WARN))
        if snapshot.overview is None:
            return
        self._fill(
            self._types_pane, table_types.rows(snapshot), lambda row: [row.job_type], snapshot
        )
        self._fill(
            self._running_pane,
            table_running.rows(snapshot),
            lambda row: [row.attempt.job_type],
            snapshot,
        )
        self._fill(self._workers_pane, snapshot.workers, _types_of_worker, snapshot)
        if snapshot.failures is not None:
            self._fill(
                self._failures_pane,
                table_failures.rows(snapshot),
                lambda row: [row.group.job_type],
                snapshot,
            )
        failed = sum(each.finished.get(State.FAILED, 0) for each in snapshot.overview.types)
        held = sum(worker.holds for worker in snapshot.workers)
        counts = (len(snapshot.overview.types), held, len(snapshot.workers), failed)
        for tab, count in zip(self._tabs, counts, strict=True):
            tab.show(f"{count:,}")

    def _fill(
        self,
        pane: Pane[Row],
        rows: Sequence[Row],
        types: Callable[[Row], list[str]],
        snapshot: Snapshot,
    ) -> None:
        text = self._filter.value.strip().lower()
        queues = (
            {each.job_type: each.queue for each in snapshot.overview.types}
            if snapshot.overview
            else {}
        )

        def matches(name: str) -> bool:
            return text in name.lower() or text == queues.get(name, DEFAULT_QUEUE).lower()

        shown = [row for row in rows if any(map(matches, types(row)))]
        shown = shown if text else list(rows)
        hint = hints.filtered(text) if rows else hints.empty(pane.title, snapshot)
        pane.fill(shown, hint)

    # ── keys ──────────────────────────────────────────────────────────────────────────────

    @property
    def pane(self) -> AnyPane:
        """The pane that is shown."""
        return self._panes[self._shown_pane]

    def action_pane(self, number: int) -> None:
        """Show a pane by its number."""
        self._shown_pane = number - 1
        self.query_one(ContentSwitcher).current = self.pane.id
        for tab, pane in zip(self._tabs, self._panes, strict=True):
            tab.set_class(pane is self.pane, "shown")
        self.pane.table.focus()
        self._poll_requested.set()

    def action_turn(self, by: int) -> None:
        """Show the next pane, or the previous one."""
        self.action_pane((self._shown_pane + by) % len(self._panes) + 1)

    def action_filter(self) -> None:
        self._filter.display = True
        self._filter.focus()
        self.show_message("Enter keeps the filter, escape removes it.", formatting.DIM)

    def action_no_filter(self) -> None:
        self._filter.value = ""
        self._leave_filter()

    @on(Input.Changed)
    def _filter_changed(self) -> None:
        self.show_snapshot()

    @on(Input.Submitted)
    def _leave_filter(self) -> None:
        self._filter.display = False
        self.pane.table.focus()
        self.show_message("")

    def action_problems(self) -> None:
        async def read() -> Group:
            return detail_text.problems((await self._poller.poll()).problems)

        self.textual_app.push_screen(
            DetailsScreen(self.queue, self.read_only, read, on_poll_now=self._poller.poll_now)
        )

    @on(Table.ActionRequested)
    def _action_requested(self, request: Table.ActionRequested) -> None:
        match request.row:
            case TypeNow():
                self._key_bindings.on_type(request.verb, request.row)
            case RunningJob():
                self._key_bindings.on_job(
                    request.verb, request.row.attempt.id, request.row.attempt.job_type
                )
            case WorkerNow():
                self._key_bindings.on_worker(request.verb, request.row)
            case FailureRow():
                self._key_bindings.on_group(request.verb, request.row.group)
            case _:
                raise AssertionError(f"no pane shows {request.row!r}")


def _types_of_worker(worker: WorkerNow) -> list[str]:
    """Return the types that a worker runs, and those of the jobs that it holds."""
    return [*types_of(worker), *(attempt.job_type for attempt in worker.attempts)]
