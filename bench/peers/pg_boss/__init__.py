"""pg-boss: Node on PostgreSQL; a handler gets a batch, which is completed as a whole."""

from __future__ import annotations

from bench.peer import Peer, Plan

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
        "enqueue_bulk": Plan(100_000),
        "enqueue_single": Plan(2_000),
        "drain_1": Plan(200_000),
        "drain_2": Plan(200_000, processes=2),
        "drain_after_load": Plan(200_000),
        "pickup": Plan(300),
    },
    unfinished="select count(*) from pgboss.job where state in ('created', 'retry', 'active')",
    finished="select count(*) from pgboss.job where state = 'completed'",
)
