"""howdah show: show everything about one job."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, cast

import click
from rich.console import Group, RenderableType
from rich.highlighter import JSONHighlighter
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from howdah import Queue
from howdah.cli import formatting, output
from howdah.cli.options import dsn_option, json_option, part_of_job_id
from howdah.cli.run_on_queue import run_on_queue
from howdah.errors import JobNotFound
from howdah.job import Job
from howdah.observe import TookTooLong
from howdah.observe.short_id import find_one
from howdah.observe.steps import Step, steps, words_of
from howdah.text.printable import clean, one_line
from howdah.text.wording import priority
from howdah.waits_for import WaitsFor


@click.command()
@click.argument("id", metavar="ID", type=part_of_job_id)
@json_option
@dsn_option
def show(id: str, as_json: bool, dsn: str | None) -> None:
    """Show everything about one job.

    Prints its state, its payload and result, and the error and traceback of each attempt. A part
    of the id is enough: six or more digits of its beginning or its end, if only one job has them.
    An end is searched for among the newest jobs only.
    """

    async def work(queue: Queue) -> tuple[Job, str | None, list[Step]]:
        job = await queue.get(await find_one(queue.store, id))
        if as_json:
            return job, None, []
        its_steps = await steps(queue.store, job.id)
        return job, await _waits_for(queue, job, its_steps), its_steps

    job, waits_for, its_steps = run_on_queue(dsn, work)
    if as_json:
        output.show_json(job)
    else:
        output.show(Group(*_sections(job, waits_for, its_steps)))


async def _waits_for(queue: Queue, job: Job, its_steps: list[Step]) -> str | None:
    """Say what a job waits for; if that is more than a word can say, in a sentence as `why`."""
    if job.waits_for is None:
        return None
    with suppress(JobNotFound, TookTooLong):
        if job.waits_for in (WaitsFor.KEY, WaitsFor.LIMIT):
            return f"{job.waits_for.words}. {(await queue.why(job.id)).sentence}"
        if any(step.blocks for step in its_steps):
            return (await queue.why(job.id)).sentence
    return job.waits_for.words


def _sections(job: Job, waits_for: str | None, its_steps: list[Step]) -> Generator[RenderableType]:
    yield _facts(job, waits_for)
    if its_steps:
        yield from _steps(its_steps)
    yield from _json("payload", job.data)
    if job.result is not None:
        yield from _json("result", job.result)
    if _is_error_list(job.errors):
        for entry in job.errors:
            yield from _error(entry)
    else:
        yield from _json("errors", job.errors)
    if job.last_error and not job.errors:
        yield Text()
        yield Text.assemble(("error  ", "bold"), clean(job.last_error))


def _facts(job: Job, waits_for: str | None) -> Table:
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold")
    facts.add_column(overflow="fold")
    facts.add_row("id", str(job.id))
    facts.add_row("type", one_line(job.job_type))
    facts.add_row("status", formatting.status(job.status))
    facts.add_row("priority", priority(job.priority))
    facts.add_row("progress", formatting.progress(job) or "0%")
    facts.add_row("attempts", f"{job.attempts} of {job.max_attempts}")
    facts.add_row("events", f"{job.events_count:,}")
    if job.unique_key is not None:
        facts.add_row("unique key", one_line(job.unique_key))
    if job.key is not None:
        facts.add_row("key", one_line(job.key))
    if job.limited_by is not None:
        facts.add_row("limit", one_line(job.limited_by))
    if job.arrival is not None:
        facts.add_row("arrival", f"{job.arrival:,}")
    if waits_for is not None:
        facts.add_row("waits for", one_line(waits_for))
    if job.worker_id is not None:
        facts.add_row("worker", one_line(job.worker_id))
    for name, at in (
        ("created", job.created_at),
        ("scheduled for", job.scheduled_for),
        ("due", job.run_at),
        ("expires", job.expires_at),
        ("claimed", job.claimed_at),
        ("started", job.started_at),
        ("ended", job.completed_at),
    ):
        if at is not None:
            facts.add_row(name, formatting.moment(at))
    if job.started_at is not None and job.completed_at is not None:
        facts.add_row("took", formatting.length(job.completed_at - job.started_at))
    return facts


def _steps(its_steps: list[Step]) -> Generator[RenderableType]:
    """List the steps with their times."""
    table = output.table("STEP", "ATTEMPT", "BEGAN", "", right=("ATTEMPT",))
    now = datetime.now(UTC)
    for step in its_steps:
        name = str(step.key).removeprefix("the ")
        table.add_row(
            one_line(name),
            str(step.attempt),
            formatting.moment(step.began),
            one_line(words_of(step, now)),
        )
    yield Text()
    yield Text("steps", style="bold")
    yield Padding(table, (0, 0, 0, 2))


def _json(title: str, value: object) -> Generator[RenderableType]:
    """Format JSON, with colours on a terminal."""
    yield Text()
    yield Text(title, style="bold")
    yield Padding(JSONHighlighter()(output.json_text(value)), (0, 0, 0, 2))


def _is_error_list(errors: Any) -> bool:
    """Tell whether this is a list of objects: a plain INSERT may have stored anything."""
    return isinstance(errors, list) and all(
        isinstance(entry, dict) for entry in cast("list[Any]", errors)
    )


def _error(entry: dict[str, Any]) -> Generator[RenderableType]:
    yield Text()
    yield Text.assemble(
        (one_line(f"attempt {entry.get('attempt')}"), "bold"),
        ("  on ", "dim"),
        one_line(str(entry.get("worker_id", "an unknown worker"))),
    )
    yield Padding(Text(clean(str(entry.get("error", ""))), style="red"), (0, 0, 0, 2))
    if entry.get("traceback"):
        traceback = clean(str(entry["traceback"]).rstrip())
        yield Padding(Text(traceback, style="dim", overflow="fold"), (0, 0, 0, 2))
