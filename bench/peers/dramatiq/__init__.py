"""Dramatiq: threads on Redis."""

from __future__ import annotations

from bench.peer import Peer, Plan

PEER = Peer(
    name="dramatiq",
    title="Dramatiq",
    kind="python",
    store="redis",
    packages=("dramatiq==2.2.1", "redis==8.1.*", "hiredis"),
    settings=(
        "redis-py with hiredis; send() one at a time; 8 threads, dramatiq_queue_prefetch 1,000,"
        " dramatiq_worker_timeout 20 ms (its default of 1,000 ms makes pickup slower);"
        " processes: 2 worker processes of one thread each"
    ),
    keeps="nothing",
    workloads={
        "enqueue_bulk": Plan(10_000, every=3),
        "enqueue_single": Plan(2_000, every=3),
        "drain_1": Plan(10_000),
        "drain_2": Plan(10_000, processes=2, every=3),
        "drain_sleep": Plan(10_000, options={"sleep_ms": 1}),
        "threads": Plan(10_000),
        "processes": Plan(10_000, processes=2, options={"threads": 1}),
        "pickup": Plan(300, every=3),
    },
    options={"threads": 8},
    candidates={"drain_1": tuple({"threads": number} for number in (1, 2, 4, 16))},
    unfinished=(("HLEN", "dramatiq:default.msgs"),),
)
