"""howdah itself, from this checkout."""

from __future__ import annotations

from bench.peer import Peer, Plan, Stressed

PEER = Peer(
    name="howdah",
    title="howdah",
    kind="python",
    store="postgres",
    packages=(),
    settings=(
        "asyncpg, uvloop; enqueue_many of all jobs in one call; worker with its defaults"
        " (concurrency 100, batches of up to 2,000), except 16 processes with concurrency 10 each;"
        " complete waits for the disk"
    ),
    keeps="the job row, with times, attempts and result",
    workloads={
        "enqueue_bulk": Plan(100_000),
        "enqueue_single": Plan(2_000),
        "drain_1": Plan(200_000),
        "drain_2": Plan(200_000, processes=2),
        "drain_after_load": Plan(200_000),
        "drain_16": Plan(200_000, processes=16, options={"concurrency": 10}),
        "drain_sleep": Plan(50_000, options={"sleep_ms": 1}),
        "threads": Plan(50_000, options={"run": "thread"}),
        "processes": Plan(50_000, options={"run": "process"}),
        "floor": Plan(200_000),
        "pickup": Plan(300),
    },
    unfinished="select count(*) from howdah.jobs_live",
    finished="select count(*) from howdah.jobs where status = 'completed'",
    options={"concurrency": 100},
    candidates={
        "drain_1": tuple({"concurrency": number} for number in (20, 50, 200, 500)),
    },
    stressed=Stressed(
        "jobs of a worker that was silent for 15 s are taken by another one (its default)",
        {"silent_after": 15},
    ),
)
