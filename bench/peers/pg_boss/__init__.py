"""pg-boss: Node on PostgreSQL; a handler gets a batch, which is completed as a whole."""

from __future__ import annotations

from bench.peer import Peer, Plan, Stressed

PEER = Peer(
    name="pg_boss",
    title="pg-boss",
    kind="node",
    store="postgres",
    packages=("pg-boss@12.35.0",),
    settings=(
        "insert() 5,000 per call; batchSize 1,000, localConcurrency 2, burstWhenBatchFull,"
        " LISTEN/NOTIFY on; the handler gets an array and the batch is completed as a whole"
    ),
    keeps="the job row, for 7 days",
    workloads={
        "enqueue_bulk": Plan(50_000),
        "enqueue_single": Plan(1_000, every=3),
        "drain_1": Plan(100_000, every=3),
        "drain_2": Plan(100_000, processes=2, every=3),
        "drain_after_load": Plan(100_000),
        "drain_sleep": Plan(50_000, options={"sleep_ms": 1}),
        "pickup": Plan(300, every=3),
    },
    unfinished="select count(*) from pgboss.job where state in ('created', 'retry', 'active')",
    finished="select count(*) from pgboss.job where state = 'completed'",
    options={"batch_size": 1000, "local_concurrency": 2, "enqueue_batch": 5000},
    candidates={
        "drain_1": (
            {"batch_size": 500, "local_concurrency": 2},
            {"batch_size": 1000, "local_concurrency": 1},
            {"batch_size": 1000, "local_concurrency": 4},
            {"batch_size": 5000, "local_concurrency": 2},
        ),
        "enqueue_bulk": ({"enqueue_batch": 1000}, {"enqueue_batch": 20_000}),
    },
    stressed=Stressed(
        "a job without a beat for 15 s is retried (heartbeatSeconds 15, which is off by default;"
        " supervised every 5 s instead of every minute)",
        {"silent_after": 15, "supervise_every": 5, "producer_connections": 8},
    ),
)
