"""Memory: how large a worker and a producer become, however many jobs there are.

    python -m bench.memory                  both, in full: some two minutes
    python -m bench.memory --scale 0.05     with a twentieth of the jobs: does it work?
    python -m bench.memory --server FOLDER  the PostgreSQL whose programs are in FOLDER

A worker's resident size after a million jobs is compared with its size after ten thousand. A
process that hands over a million drafts from a generator says the largest size it ever had.
"""

from __future__ import annotations

import sys

from bench.cases import Case, Stage, command, exit_code
from bench.findings import Curve, Finding, Point, Seen
from bench.resident import resident_kib

FEW, MANY = 10_000, 1_000_000
STEPS = 20  # points of the worker's curve
GROWTH = 1.1
LARGEST_MB = 200.0


def of_a_worker(stage: Stage) -> Seen:
    few, many = stage.jobs(FEW), stage.jobs(MANY)
    sizes: list[Point] = []
    with stage.yard() as yard, yard.worker() as worker:
        for step in range(STEPS + 1):
            done = few + (many - few) * step // STEPS
            yard.enqueue(done - worker.tally.count().calls)
            yard.watch(worker, done)
            yard.until_settled(worker, done)
            sizes.append((done, resident_kib(worker.pid) / 1024))
    (_, first), (_, last) = sizes[0], sizes[-1]
    return Seen(
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
                across="jobs handled",
                upward="MiB",
                lines={"worker": [(jobs, round(size, 2)) for jobs, size in sizes]},
            )
        ],
    )


def of_a_producer(stage: Stage) -> Seen:
    jobs = stage.jobs(MANY)
    with stage.yard() as yard, yard.hands("hand_over", jobs) as producer:
        producer.wait_until_ready()
        producer.go()
        seconds = float(producer.hear("seconds"))
        peak = float(producer.hear("peak_kib")) * 1024 / 1e6
    return Seen(
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


WORKER = Case("worker", "a worker after 10,000 jobs and after 1,000,000", of_a_worker)
PRODUCER = Case("enqueue_many", "enqueue_many of 1,000,000 from a generator", of_a_producer)
CASES = {case.name: case for case in (WORKER, PRODUCER)}

if __name__ == "__main__":
    sys.exit(exit_code(command("memory", CASES, __doc__)))
