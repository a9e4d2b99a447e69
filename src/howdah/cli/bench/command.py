"""Command: `howdah bench` measures the workloads and prints the results."""

from __future__ import annotations

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table

from howdah import Queue
from howdah.cli import output
from howdah.cli.bench.workloads import Measurement, ReportProgress, Workloads
from howdah.cli.options import dsn_option, json_option
from howdah.cli.run_on_queue import run_on_queue


@click.command()
@click.option(
    "--jobs", type=click.IntRange(1, 10_000_000), default=100_000, show_default=True,
    help="How many jobs to enqueue and run.",
)  # fmt: skip
@click.option(
    "--concurrency", type=click.IntRange(1, 10_000), default=100, show_default=True,
    help="How many jobs run at once.",
)  # fmt: skip
@json_option
@dsn_option
def bench(jobs: int, concurrency: int, as_json: bool, dsn: str | None) -> None:
    """Measure how fast this database runs the work of a queue.

    Enqueues jobs in bulk and one by one, runs them with one worker in this process, and measures
    how soon an idle worker starts a job. The handler does nothing; a payload has 100 bytes. The
    jobs have a type of their own and are deleted at the end. This puts a heavy load on the
    database: other programs that use it become slower meanwhile.
    """

    async def work(queue: Queue) -> list[Measurement]:
        with _progress() as progress:
            report = _progress_reporter(progress)
            return await Workloads(
                queue, jobs=jobs, concurrency=concurrency, report=report
            ).measure_all()

    measurements = run_on_queue(dsn, work)
    if as_json:
        output.show_json([_fields(measurement) for measurement in measurements])
    else:
        output.show(_table(measurements))


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description:<14}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=Console(stderr=True),
        transient=True,
    )


def _progress_reporter(progress: Progress) -> ReportProgress:
    tasks: dict[str, TaskID] = {}

    def report(workload: str, done: int, total: int) -> None:
        if workload not in tasks:
            tasks[workload] = progress.add_task(workload, total=total)
        progress.update(tasks[workload], completed=done)

    return report


def _fields(measurement: Measurement) -> dict[str, object]:
    cost = measurement.cost
    fields: dict[str, object] = {
        "work": measurement.workload,
        "jobs": measurement.jobs,
        "seconds": round(cost.seconds, 6),
        "jobs_per_second": round(measurement.jobs / cost.seconds, 1),
        "cpu_us_per_job": round(1e6 * cost.cpu_seconds / measurement.jobs, 2),
        "statements_per_job": round(cost.statements / measurement.jobs, 5),
        "wal_bytes_per_job": None
        if cost.wal_bytes is None
        else round(cost.wal_bytes / measurement.jobs, 1),
    }
    if measurement.latencies:
        fields["latency_ms"] = {
            name: round(1000 * measurement.percentile(part), 3)
            for name, part in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0))
        }
    return fields


def _table(measurements: list[Measurement]) -> Table:
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
    table = output.table("WORK", *headings, right=headings)
    for measurement in measurements:
        cost = measurement.cost
        wal = "·" if cost.wal_bytes is None else f"{cost.wal_bytes / measurement.jobs:,.0f}"
        latencies = (
            [f"{1000 * measurement.percentile(part):.2f}" for part in (0.5, 0.95, 0.99)]
            if measurement.latencies
            else ["·", "·", "·"]
        )
        table.add_row(
            measurement.workload,
            f"{measurement.jobs:,}",
            f"{measurement.jobs / cost.seconds:,.0f}",
            f"{1e6 * cost.cpu_seconds / measurement.jobs:,.1f}",
            wal,
            f"{cost.statements / measurement.jobs:.3f}",
            *latencies,
        )
    return table
