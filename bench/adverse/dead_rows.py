"""Dead rows: what people read of a queue beside a million dead rows of jobs_live.

An open transaction holds them. The baseline has run the same jobs without such a transaction, and
its dead rows are vacuumed. Both have the same jobs in line. Each query for people is called on both
in turns; the ratio is that of the medians. No query has a time limit here.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from uuid import UUID

from bench.adverse.open_transaction import hold_snapshot
from bench.adverse.pair import ADVERSE, BASELINE
from bench.case_record import CaseResult, Curve, Finding
from bench.cases import Case, CaseContext
from bench.sample_jobs import NOOP
from bench.testbed import Testbed
from howdah import Queue, observe

DEAD, IN_LINE, DUE_LATER = 1_000_000, 10_000, 500
TYPES = [f"{NOOP}_{number:02d}" for number in range(20)]
PRIORITIES = range(100, 105)
LATER = timedelta(hours=1)
REPEATS = 9
UNCHANGED = 1.25
WITHIN = timedelta(minutes=5)

Query = Callable[[Queue, UUID], Awaitable[object]]

QUERIES: dict[str, Query] = {
    "queue.counts()": lambda queue, _: queue.counts(),
    "overview": lambda queue, _: observe.overview(queue.store, within=WITHIN),
    "problems": lambda queue, _: observe.problems(queue.store, within=WITHIN),
    "workers": lambda queue, _: observe.workers(queue.store, within=WITHIN),
    "jobs": lambda queue, _: observe.page(queue.store, within=WITHIN),
    "jobs of a type": lambda queue, _: observe.page(
        queue.store, observe.Filter(job_type=(TYPES[0],)), within=WITHIN
    ),
    "failures": lambda queue, _: observe.failures(queue.store, within=WITHIN),
    "one job": lambda queue, id: observe.job_history(queue.store, id, within=WITHIN),
    "why a job waits": lambda queue, id: observe.why(queue.store, id, within=WITHIN),
    "why a type waits": lambda queue, _: observe.why_type(queue.store, TYPES[0], within=WITHIN),
    "health": lambda queue, _: observe.examine(queue.store, within=WITHIN),
}


def measure_dead_rows(context: CaseContext) -> CaseResult:
    with (
        context.testbed() as baseline,
        context.testbed() as adverse,
        hold_snapshot(adverse),
    ):
        for testbed in (baseline, adverse):
            _run_jobs(context, testbed)
        seconds = asyncio.run(_measure_all(baseline, adverse))
    return CaseResult(
        [_finding(query, sides) for query, sides in seconds.items()],
        [_curve(seconds)],
    )


def _run_jobs(context: CaseContext, testbed: Testbed) -> None:
    """Run the jobs that leave dead rows, and enqueue those that are there to be read."""
    dead = context.jobs(DEAD)
    testbed.enqueue(dead, TYPES)
    testbed.drain(dead, names=TYPES)
    testbed.enqueue(context.jobs(IN_LINE), TYPES, PRIORITIES)
    testbed.enqueue(context.jobs(DUE_LATER), TYPES, delay=LATER)
    testbed.vacuum_and_checkpoint()


async def _measure_all(baseline: Testbed, adverse: Testbed) -> dict[str, dict[str, list[float]]]:
    async with Queue(baseline.dsn) as first, Queue(adverse.dsn) as second:
        sides = ((BASELINE, first), (ADVERSE, second))
        ids = {side: await _newest(queue) for side, queue in sides}
        seconds: dict[str, dict[str, list[float]]] = {}
        for name, query in QUERIES.items():
            of_query = seconds[name] = {BASELINE: list[float](), ADVERSE: list[float]()}
            for number in range(REPEATS + 1):
                for side, queue in sides if number % 2 else reversed(sides):
                    began = time.perf_counter()
                    await query(queue, ids[side])
                    if number:  # the first call also makes its plan
                        of_query[side].append(time.perf_counter() - began)
        return seconds


async def _newest(queue: Queue) -> UUID:
    """Return a job near the end of its line."""
    return await queue.store.fetchval(
        "select id from howdah.jobs_live where job_type = $1 and ready_at is not null"
        " order by id desc limit 1",
        TYPES[0],
    )


def _finding(query: str, sides: dict[str, list[float]]) -> Finding:
    medians = {side: statistics.median(values) * 1000 for side, values in sides.items()}
    return Finding(
        case=DEAD_ROWS.name,
        title=f"{DEAD_ROWS.title}, {query} ({medians[BASELINE]:.1f} ms without)",
        measured=round(medians[ADVERSE] / medians[BASELINE], 3),
        sense="at most",
        bound=UNCHANGED,
    )


def _curve(seconds: dict[str, dict[str, list[float]]]) -> Curve:
    return Curve(
        case=DEAD_ROWS.name,
        title=f"{DEAD_ROWS.title}: queries for people, 1 is {next(iter(seconds))}",
        x_label="query, in the order of the report",
        y_label="ms",
        series={
            side: [
                (nth, round(value * 1000, 3))
                for nth, sides in enumerate(seconds.values(), 1)
                for value in sides[side]
            ]
            for side in (BASELINE, ADVERSE)
        },
    )


DEAD_ROWS = Case("dead_rows", "1,000,000 dead rows", measure_dead_rows)
