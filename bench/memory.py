"""Memory: how much a worker and a producer need, however many jobs there are.

    python -m bench.memory                  both, in full: about two minutes
    python -m bench.memory --scale 0.05     with a twentieth of the jobs: does it work?
    python -m bench.memory --server FOLDER  with the PostgreSQL in FOLDER

A worker's resident size after a million jobs is compared with its size after ten thousand. A
process that enqueues a million drafts from a generator reports its peak size.
"""

from __future__ import annotations

import sys

from bench.case_record import CaseResult, Curve, Finding, Point
from bench.cases import Case, CaseContext, exit_code, run_command_line
from bench.memory_usage import resident_kib

FEW, MANY = 10_000, 1_000_000
STEPS = 20  # points of the worker's curve
GROWTH = 1.1
LARGEST_MB = 200.0


def measure_worker(context: CaseContext) -> CaseResult:
    few, many = context.jobs(FEW), context.jobs(MANY)
    sizes: list[Point] = []
    with context.testbed() as testbed, testbed.worker() as worker:
        for step in range(STEPS + 1):
            done = few + (many - few) * step // STEPS
            testbed.enqueue(done - worker.calls.count().calls)
            testbed.wait_for_calls(worker, done)
            testbed.wait_until_settled(worker, done)
            sizes.append((done, resident_kib(worker.pid) / 1024))
    (_, first), (_, last) = sizes[0], sizes[-1]
    return CaseResult(
        [
            Finding(
                case=WORKER.name,
                title=f"worker after 1,000,000 jobs to after 10,000 ({first:.1f} MiB)",
                measured=round(last / first, 3),
                sense="at most",
                bound=GROWTH,
            )
        ],
        [
            Curve(
                case=WORKER.name,
                title="a worker's resident size",
                x_label="jobs handled",
                y_label="MiB",
                series={"worker": [(jobs, round(size, 2)) for jobs, size in sizes]},
            )
        ],
    )


def measure_producer(context: CaseContext) -> CaseResult:
    jobs = context.jobs(MANY)
    with context.testbed() as testbed, testbed.driver("enqueue_batches", jobs) as producer:
        producer.wait_until_ready()
        producer.send_start()
        seconds = float(producer.read("seconds"))
        peak = float(producer.read("peak_kib")) * 1024 / 1e6
    return CaseResult(
        [
            Finding(
                case=PRODUCER.name,
                title=f"peak of a process in enqueue_many of 1,000,000 ({jobs / seconds:,.0f}/s)",
                measured=round(peak, 1),
                sense="below",
                bound=LARGEST_MB,
                unit=" MB",
            )
        ]
    )


WORKER = Case("worker", "a worker after 10,000 jobs and after 1,000,000", measure_worker)
PRODUCER = Case("enqueue_many", "enqueue_many of 1,000,000 from a generator", measure_producer)
CASES = {case.name: case for case in (WORKER, PRODUCER)}

if __name__ == "__main__":
    sys.exit(exit_code(run_command_line("memory", CASES, __doc__)))
