"""Chancy: asyncio on PostgreSQL; endings are written once a second."""

from __future__ import annotations

from bench.peer import Peer, Plan

PEER = Peer(
    name="chancy",
    title="Chancy",
    kind="python",
    store="postgres",
    packages=("chancy==0.26.0", "psycopg[binary,pool]==3.3.*", "uvloop"),
    settings=(
        "psycopg 3.3 (C), uvloop; push_many 1,000 per call; AsyncExecutor (threads:"
        " ThreadedExecutor), concurrency 500, eager_polling, polling_interval 1 s, logging off,"
        " otherwise its defaults"
    ),
    keeps="the job row, for a day",
    workloads={
        "enqueue_bulk": Plan(10_000, every=3),
        "enqueue_single": Plan(1_000, every=3),
        "drain_1": Plan(10_000, every=3),
        "drain_2": Plan(10_000, processes=2, every=3),
        "drain_sleep": Plan(10_000, options={"sleep_ms": 1}),
        "threads": Plan(5_000, options={"run": "thread"}, every=3),
        "pickup": Plan(300),
    },
    unfinished="select count(*) from chancy_jobs where state in ('pending', 'running', 'retrying')",
    finished="select count(*) from chancy_jobs where state = 'succeeded'",
    options={"concurrency": 500, "enqueue_batch": 1000},
    candidates={
        "drain_1": (
            *({"concurrency": number} for number in (100, 200, 1000, 2000)),
            {"run": "thread", "concurrency": 8},
        ),
        "enqueue_bulk": ({"enqueue_batch": 100}, {"enqueue_batch": 5000}),
    },
)
