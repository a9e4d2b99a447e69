"""SAQ: asyncio on Redis."""

from __future__ import annotations

from bench.peer import Peer, Plan

PEER = Peer(
    name="saq",
    title="SAQ",
    kind="python",
    store="redis",
    packages=("saq[redis]==0.26.4", "redis", "hiredis", "typing_extensions", "uvloop"),
    settings=(
        "redis-py with hiredis, uvloop; 50 enqueue calls at a time, as many as its limit of"
        " concurrent operations is set to; worker concurrency 20, otherwise its defaults"
    ),
    keeps="the job, for 10 minutes",
    workloads={
        "enqueue_bulk": Plan(10_000, every=3),
        "enqueue_single": Plan(2_000, every=3),
        "drain_1": Plan(5_000, every=3),
        "drain_2": Plan(5_000, processes=2, every=3),
        "drain_sleep": Plan(5_000, options={"sleep_ms": 1}),
        "threads": Plan(5_000, options={"run": "thread"}, every=3),
        "pickup": Plan(300),
    },
    unfinished=(("ZCARD", "saq:default:incomplete"),),
    options={"concurrency": 20},
    candidates={
        "drain_1": (
            *({"concurrency": number} for number in (10, 50, 100, 200)),
            {"run": "thread"},
        ),
    },
)
