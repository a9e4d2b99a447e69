"""Oban for Python: asyncio on PostgreSQL. It needs a newer Python than the other peers."""

from __future__ import annotations

from bench.peer import Peer, Plan

PEER = Peer(
    name="oban",
    title="Oban for Python",
    kind="python",
    store="postgres",
    packages=("oban==0.7.0",),
    settings=(
        "psycopg 3.3 (C), uvloop; enqueue_many 1,000 per call; queue limit 100, pool of 10,"
        " otherwise its defaults"
    ),
    keeps="the job row, for a day",
    workloads={
        "enqueue_bulk": Plan(20_000, every=3),
        "enqueue_single": Plan(1_000, every=3),
        "drain_1": Plan(5_000, every=3),
        "drain_2": Plan(5_000, processes=2, every=3),
        "drain_sleep": Plan(5_000, options={"sleep_ms": 1}),
        "pickup": Plan(300, every=3),
    },
    unfinished=(
        "select count(*) from oban_jobs"
        " where state in ('available', 'scheduled', 'executing', 'retryable')"
    ),
    finished="select count(*) from oban_jobs where state = 'completed'",
    options={"limit": 100, "enqueue_batch": 1000},
    candidates={
        "drain_1": (
            *({"limit": number} for number in (20, 50, 500, 1000)),
            {"limit": 100, "run": "plain"},
        ),
        "enqueue_bulk": ({"enqueue_batch": 200}, {"enqueue_batch": 5000}),
    },
    oldest_python=(3, 12),
)
