"""arq: asyncio on Redis."""

from __future__ import annotations

from bench.peer import Peer, Plan

PEER = Peer(
    name="arq",
    title="arq",
    kind="python",
    store="redis",
    packages=("arq==0.28.0", "hiredis", "uvloop"),
    settings=(
        "redis-py with hiredis, uvloop; 20 enqueue_job calls at a time; max_jobs 100,"
        " queue_read_limit 500, poll_delay 10 ms (its default is 500 ms), results not kept"
    ),
    keeps="nothing (results for an hour by default, turned off here)",
    workloads={
        "enqueue_bulk": Plan(10_000, every=3),
        "enqueue_single": Plan(2_000, every=3),
        "drain_1": Plan(5_000, every=3),
        "drain_2": Plan(5_000, processes=2, every=3),
        "drain_sleep": Plan(5_000, options={"sleep_ms": 1}),
        "pickup": Plan(300, every=3),
    },
    options={"max_jobs": 100, "queue_read_limit": 500},
    candidates={
        "drain_1": (
            {"max_jobs": 20, "queue_read_limit": 100},
            {"max_jobs": 50, "queue_read_limit": 500},
            {"max_jobs": 200, "queue_read_limit": 500},
            {"max_jobs": 500, "queue_read_limit": 1000},
        ),
    },
    unfinished=(("ZCARD", "arq:queue"),),
)
