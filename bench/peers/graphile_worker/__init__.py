"""Graphile Worker: Node on PostgreSQL, with its batching options on."""

from __future__ import annotations

from bench.peer import Peer, Plan, Stressed

PEER = Peer(
    name="graphile_worker",
    title="Graphile Worker",
    kind="node",
    store="postgres",
    packages=("graphile-worker@0.18.0", "pg@8"),
    settings=(
        "addJobs 5,000 per call; concurrentJobs 100, localQueue.size 5,000,"
        " completeJobBatchDelay 0, failJobBatchDelay 0, preparedStatements"
    ),
    keeps="nothing: the row is deleted",
    workloads={
        "enqueue_bulk": Plan(50_000),
        "enqueue_single": Plan(1_000, every=3),
        "drain_1": Plan(200_000),
        "drain_2": Plan(200_000, processes=2),
        "drain_after_load": Plan(200_000),
        "drain_sleep": Plan(50_000, options={"sleep_ms": 1}),
        "pickup": Plan(300),
    },
    unfinished="select count(*) from graphile_worker._private_jobs",
    options={
        "concurrent_jobs": 100,
        "local_queue": 5000,
        "complete_delay_ms": 0,
        "enqueue_batch": 5000,
    },
    candidates={
        "drain_1": (
            {"concurrent_jobs": 24, "local_queue": 2000},
            {"concurrent_jobs": 100, "local_queue": 2000},
            {"concurrent_jobs": 500, "local_queue": 5000},
            {"concurrent_jobs": 1000, "local_queue": 10_000},
            {"complete_delay_ms": 5},
        ),
        "enqueue_bulk": ({"enqueue_batch": 1000}, {"enqueue_batch": 20_000}),
    },
    stressed=Stressed(
        "a job stays locked for 4 hours, which no option changes; a person can unlock the jobs of a"
        " worker that is known to be dead",
        {"producer_connections": 8},
    ),
)
