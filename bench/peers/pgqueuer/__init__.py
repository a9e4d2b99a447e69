"""PgQueuer: asyncio on PostgreSQL, the fastest peer that runs Python handlers."""

from __future__ import annotations

from bench.peer import Peer, Plan, Stressed

PEER = Peer(
    name="pgqueuer",
    title="PgQueuer",
    kind="python",
    store="postgres",
    packages=("pgqueuer==1.6.0", "asyncpg==0.32.0", "uvloop"),
    settings=(
        "asyncpg, uvloop; enqueue() with lists of 5,000; batch_size 500, one connection, default"
        " (durable) tables; plain functions through asyncio.to_thread, as its documentation says"
    ),
    keeps="three log rows; the job row is deleted",
    workloads={
        "enqueue_bulk": Plan(50_000),
        "enqueue_single": Plan(2_000),
        "drain_1": Plan(50_000),
        "drain_2": Plan(50_000, processes=2, every=3),
        "drain_after_load": Plan(50_000),
        "drain_sleep": Plan(20_000, options={"sleep_ms": 1}),
        "threads": Plan(20_000, options={"run": "thread"}),
        "pickup": Plan(300),
    },
    unfinished="select count(*) from pgqueuer",
    finished="select count(*) from pgqueuer_log where status = 'successful'",
    options={"batch_size": 500, "connections": 1, "enqueue_batch": 5000},
    candidates={
        "drain_1": (
            *({"batch_size": size} for size in (100, 200, 1000, 2000)),
            {"connections": 4},
            {"run": "thread"},
        ),
        "enqueue_bulk": ({"enqueue_batch": 1000}, {"enqueue_batch": 20_000}),
    },
    stressed=Stressed(
        "a job without a beat for 15 s is taken again (heartbeat_timeout 15 s instead of 30 s)",
        {"silent_after": 15, "producer_connections": 8},
    ),
)
