"""Main: the headline, four panes, the keys.

Comes after   heart.py, which looks, and the tables, which show
Comes before  app.py

Keys over a row arrive here as `Wanted`, with the verb and the row.
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

from howdah.client.queue import Queue
from howdah.observe import TypeNow, WorkerNow
from howdah.states import State
from howdah.text.printable import one_line
from howdah.top import about, headline, hints, table_failures, table_running, table_types, words
from howdah.top.board import Board
from howdah.top.details import Details
from howdah.top.heart import Heart, Seen
from howdah.top.pane import AnyPane, Pane, Tab
from howdah.top.table import Table
from howdah.top.table_failures import Failed, FailuresTable
from howdah.top.table_running import RunningTable, Work
from howdah.top.table_types import TypesTable
from howdah.top.table_workers import WorkersTable, types_of
from howdah.top.wants import Wants

Row = TypeVar("Row")


class Main(Board):
    """The screen that is there from the beginning to the end."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", key_display="/"),
        *(Binding(str(n), f"pane({n})", show=False) for n in (1, 2, 3, 4)),
        Binding("exclamation_mark", "problems", "Problems", show=False),
        Binding("escape", "no_filter", "Show all", show=False),
        Binding("q", "app.quit", "Quit"),
    ]

    def __init__(self, queue: Queue, heart: Heart, read_only: bool) -> None:
        super().__init__(queue, read_only)
        self._heart = heart
        self._wants = Wants(self, heart)
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
        self._at = 0
        self._headline = Static(markup=False)
        self._problem = Static(markup=False)
        self._filtered = Static(id="filtered", markup=False)
        self._filter = Input(placeholder="a part of a job type", id="filter", compact=True)

    def compose(self) -> ComposeResult:
        yield self._headline
        yield self._problem
        with Horizontal(id="tabs"):
            yield from self._tabs
            yield self._filtered
        with ContentSwitcher(initial=self._panes[0].id):
            yield from self._panes
        yield self._filter
        yield self.said
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self._filter.display = False
        self.action_pane(1)

    # ── look and show ─────────────────────────────────────────────────────────────────────

    async def look(self) -> float:
        shown = self._panes[self._at] is self._failures_pane
        await self._heart.look(shown)
        self.show_seen()
        return self._heart.wait(shown)

    def hurry(self) -> None:
        self._heart.hurry()
        super().hurry()

    def on_resize(self, _event: events.Resize) -> None:
        self.show_seen()

    def show_seen(self) -> None:
        """Show what was seen last."""
        seen, width = self._heart.seen, self.size.width
        self._headline.update(headline.numbers(seen, self._heart.slow, width, self.read_only))
        self._problem.update(headline.worst(seen, width))
        text = self._filter.value.strip()
        self._filtered.update(Text(f"/{one_line(text)}" if text else "", style=words.WARN))
        if seen.overview is None:
            return
        self._fill(self._types_pane, table_types.rows(seen), lambda one: [one.job_type], seen)
        self._fill(
            self._running_pane, table_running.rows(seen), lambda one: [one.attempt.job_type], seen
        )
        self._fill(self._workers_pane, seen.workers, _types_at, seen)
        if seen.failures is not None:
            self._fill(
                self._failures_pane,
                table_failures.rows(seen),
                lambda one: [one.group.job_type],
                seen,
            )
        failed = sum(one.finished.get(State.FAILED, 0) for one in seen.overview.types)
        held = sum(worker.holds for worker in seen.workers)
        counts = (len(seen.overview.types), held, len(seen.workers), failed)
        for tab, count in zip(self._tabs, counts, strict=True):
            tab.show(f"{count:,}")

    def _fill(
        self,
        pane: Pane[Row],
        rows: Sequence[Row],
        types: Callable[[Row], list[str]],
        seen: Seen,
    ) -> None:
        text = self._filter.value.strip().lower()
        shown = [row for row in rows if any(text in name.lower() for name in types(row))]
        shown = shown if text else list(rows)
        empty = hints.filtered(text) if rows else hints.empty(pane.title, seen)
        pane.fill(shown, empty)

    # ── keys ──────────────────────────────────────────────────────────────────────────────

    @property
    def pane(self) -> AnyPane:
        """The pane that is shown."""
        return self._panes[self._at]

    def action_pane(self, number: int) -> None:
        """Show a pane by its number."""
        self._at = number - 1
        self.query_one(ContentSwitcher).current = self.pane.id
        for tab, pane in zip(self._tabs, self._panes, strict=True):
            tab.set_class(pane is self.pane, "shown")
        self.pane.table.focus()
        self._hurried.set()

    def action_turn(self, by: int) -> None:
        """Show the next pane, or the one before."""
        self.action_pane((self._at + by) % len(self._panes) + 1)

    def action_filter(self) -> None:
        self._filter.display = True
        self._filter.focus()
        self.say("Enter keeps the filter, escape shows all.", words.DIM)

    def action_no_filter(self) -> None:
        self._filter.value = ""
        self._leave_filter()

    @on(Input.Changed)
    def _filter_changed(self) -> None:
        self.show_seen()

    @on(Input.Submitted)
    def _leave_filter(self) -> None:
        self._filter.display = False
        self.pane.table.focus()
        self.say("")

    def action_problems(self) -> None:
        async def read() -> Group:
            return about.problems((await self._heart.look()).problems)

        self.around.push_screen(Details(self.queue, self.read_only, read, hurry=self._heart.hurry))

    @on(Table.Wanted)
    def _wanted(self, wanted: Table.Wanted) -> None:
        match wanted.row:
            case TypeNow():
                self._wants.of_type(wanted.verb, wanted.row)
            case Work():
                self._wants.of_job(wanted.verb, wanted.row.attempt.id, wanted.row.attempt.job_type)
            case WorkerNow():
                self._wants.of_worker(wanted.verb, wanted.row)
            case Failed():
                self._wants.of_group(wanted.verb, wanted.row.group)
            case _:
                raise AssertionError(f"no pane shows {wanted.row!r}")


def _types_at(worker: WorkerNow) -> list[str]:
    """Return the types that a worker knows, and those of the jobs that it holds."""
    return [*types_of(worker), *(one.job_type for one in worker.attempts)]
