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
        "enqueue_bulk": Plan(20_000),
        "enqueue_single": Plan(2_000),
        "drain_1": Plan(10_000),
        "drain_2": Plan(10_000, processes=2),
        "pickup": Plan(300),
    },
    unfinished=(("ZCARD", "arq:queue"),),
)
