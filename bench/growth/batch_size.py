"""Batch size: the same number of drafts per enqueue_many, and of jobs per claim at most.

Each step hands its jobs over in lots of that size, every lot committed, and then drains them with a
worker whose `batch_size` it is. A worker settles what has ended meanwhile in one call, whatever its
batch size, so small claims cost less than small lots.
"""

from __future__ import annotations

from bench.cases import Case, Stage
from bench.findings import Seen
from bench.growth.over import Rates, over
from bench.yard import Yard

STEPS = (1, 3, 10, 30, 100, 300, 1000, 3000)
MOST = 100_000


def over_batch_sizes(stage: Stage) -> Seen:
    with stage.yard() as yard:

        def measure(size: int) -> Rates:
            jobs = stage.jobs(min(MOST, 2000 + 500 * size))
            enqueued = jobs / handed_over(yard, jobs, size)
            return {"enqueue_many": enqueued, "worker": yard.drain(jobs, batch_size=size).rate}

        return over(
            stage,
            STEPS,
            measure,
            case=BATCH_SIZE.name,
            title=BATCH_SIZE.title,
            across="jobs per batch",
        )


def handed_over(yard: Yard, jobs: int, lot: int) -> float:
    """Hand jobs over in lots; returns the seconds it took."""
    with yard.hands("hand_over", jobs, lot=lot) as producer:
        producer.wait_until_ready()
        yard.postgres.checkpoint()
        producer.go()
        return float(producer.hear("seconds"))


BATCH_SIZE = Case("batch_size", "Jobs per second by batch size", over_batch_sizes)
