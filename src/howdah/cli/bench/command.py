"""The command `howdah bench`: measure, and lay out what was measured."""

from __future__ import annotations

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table

from howdah import Queue
from howdah.cli import ground
from howdah.cli.bench.works import Measured, Tell, Works
from howdah.cli.options import dsn_option, json_option


@click.command()
@click.option(
    "--jobs", type=click.IntRange(1, 10_000_000), default=100_000, show_default=True,
    help="How many jobs to enqueue and work off.",
)  # fmt: skip
@click.option(
    "--concurrency", type=click.IntRange(1, 10_000), default=100, show_default=True,
    help="How many jobs run at once.",
)  # fmt: skip
@json_option
@dsn_option
def bench(jobs: int, concurrency: int, as_json: bool, dsn: str | None) -> None:
    """Measure how fast this database does the work of a queue.

    Enqueues in bulk and one by one, works the jobs off with one worker in this process, and
    times how soon an idle worker picks a job up. The handler does nothing, the payload has 100
    bytes. The jobs have a type of their own and are removed afterwards. On a database that
    others use, expect to be felt.
    """

    async def work(queue: Queue) -> list[Measured]:
        with _progress() as progress:
            works = Works(queue, jobs=jobs, concurrency=concurrency, tell=_teller(progress))
            return await works.all()

    measured = ground.on_queue(dsn, work)
    if as_json:
        ground.show_json([_fields(one) for one in measured])
    else:
        ground.show(_table(measured))


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description:<14}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=Console(stderr=True),
        transient=True,
    )


def _teller(progress: Progress) -> Tell:
    tasks: dict[str, TaskID] = {}

    def tell(work: str, done: int, total: int) -> None:
        if work not in tasks:
            tasks[work] = progress.add_task(work, total=total)
        progress.update(tasks[work], completed=done)

    return tell


def _fields(one: Measured) -> dict[str, object]:
    cost = one.cost
    fields: dict[str, object] = {
        "work": one.work,
        "jobs": one.jobs,
        "seconds": round(cost.seconds, 6),
        "jobs_per_second": round(one.jobs / cost.seconds, 1),
        "cpu_us_per_job": round(1e6 * cost.cpu_seconds / one.jobs, 2),
        "statements_per_job": round(cost.statements / one.jobs, 5),
        "wal_bytes_per_job": None
        if cost.wal_bytes is None
        else round(cost.wal_bytes / one.jobs, 1),
    }
    if one.latencies:
        fields["latency_ms"] = {
            name: round(1000 * one.percentile(part), 3)
            for name, part in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0))
        }
    return fields


def _table(measured: list[Measured]) -> Table:
    headings = (
        "JOBS",
        "JOBS/S",
        "CPU µs/JOB",
        "WAL B/JOB",
        "STATEMENTS/JOB",
        "P50 ms",
        "P95 ms",
        "P99 ms",
    )
    table = ground.table("WORK", *headings, right=headings)
    for one in measured:
        cost = one.cost
        wal = "·" if cost.wal_bytes is None else f"{cost.wal_bytes / one.jobs:,.0f}"
        latencies = (
            [f"{1000 * one.percentile(part):.2f}" for part in (0.5, 0.95, 0.99)]
            if one.latencies
            else ["·", "·", "·"]
        )
        table.add_row(
            one.work,
            f"{one.jobs:,}",
            f"{one.jobs / cost.seconds:,.0f}",
            f"{1e6 * cost.cpu_seconds / one.jobs:,.1f}",
            wal,
            f"{cost.statements / one.jobs:.3f}",
            *latencies,
        )
    return table
