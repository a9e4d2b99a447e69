"""Batch size: jobs per enqueue_many call, and most jobs per claim.

Each step enqueues its jobs in batches of that size, one commit per batch. Then a worker with this
`batch_size` drains them. A worker settles everything that has ended in one call, whatever its batch
size, so small claims cost less than small enqueues.
"""

from __future__ import annotations

from bench.case_record import CaseResult
from bench.cases import Case, CaseContext
from bench.growth.sweep import Rates, sweep
from bench.testbed import Testbed

STEPS = (1, 3, 10, 30, 100, 300, 1000, 3000)
MOST = 100_000


def measure_batch_size(context: CaseContext) -> CaseResult:
    with context.testbed() as testbed:

        def measure(size: int) -> Rates:
            jobs = context.jobs(min(MOST, 2000 + 500 * size))
            enqueued = jobs / enqueue_seconds(testbed, jobs, size)
            return {"enqueue_many": enqueued, "worker": testbed.drain(jobs, batch_size=size).rate}

        return sweep(
            context,
            STEPS,
            measure,
            case=BATCH_SIZE.name,
            title=BATCH_SIZE.title,
            x_label="jobs per batch",
        )


def enqueue_seconds(testbed: Testbed, jobs: int, batch_size: int) -> float:
    """Enqueue jobs in batches, and return the seconds that it took."""
    with testbed.driver("enqueue_batches", jobs, batch_size=batch_size) as producer:
        producer.wait_until_ready()
        testbed.postgres.checkpoint()
        producer.send_start()
        return float(producer.read("seconds"))


BATCH_SIZE = Case("batch_size", "Jobs per second by batch size", measure_batch_size)
