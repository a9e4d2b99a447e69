"""Procrastinate: asyncio on PostgreSQL, one job per fetch."""

from __future__ import annotations

from bench.peer import Peer, Plan, Stressed

PEER = Peer(
    name="procrastinate",
    title="Procrastinate",
    kind="python",
    store="postgres",
    packages=("procrastinate==3.10.0", "psycopg[binary,pool]==3.3.*", "uvloop"),
    settings=(
        "psycopg 3.3 (C), uvloop; batch_defer 5,000 per call; worker concurrency 20, pool of 20,"
        " listen_notify on, delete_jobs never (its default)"
    ),
    keeps="the job row and three event rows",
    workloads={
        "enqueue_bulk": Plan(20_000, every=3),
        "enqueue_single": Plan(1_000, every=3),
        "drain_1": Plan(2_000, every=3),
        "drain_2": Plan(2_000, processes=2, every=3),
        "drain_sleep": Plan(2_000, options={"sleep_ms": 1}),
        "threads": Plan(2_000, options={"run": "thread"}, every=3),
        "pickup": Plan(300, every=3),
    },
    unfinished="select count(*) from procrastinate_jobs where status in ('todo', 'doing')",
    finished="select count(*) from procrastinate_jobs where status = 'succeeded'",
    options={"concurrency": 20, "enqueue_batch": 5000},
    candidates={
        "drain_1": (
            *({"concurrency": number} for number in (5, 10, 50)),
            {"run": "thread"},
        ),
        "enqueue_bulk": ({"enqueue_batch": 1000},),
    },
    stressed=Stressed(
        "jobs of a worker that was silent for 15 s are retried every 5 s by a task that its"
        " documentation asks users to write",
        {"silent_after": 15, "producer_connections": 8},
    ),
)
