"""Celery: the best known Python job queue, on Redis."""

from __future__ import annotations

from bench.peer import Peer, Plan

THREADS = {"pool": "threads", "concurrency": 8}

PEER = Peer(
    name="celery",
    title="Celery",
    kind="python",
    store="redis",
    packages=("celery[redis]==5.7.0", "hiredis"),
    settings=(
        "redis-py with hiredis; one open producer; prefork with 2 children (threads: 8 threads),"
        " prefetch multiplier 1,000, early acknowledgement (its default), no result backend, no"
        " gossip, mingle, heartbeat or events"
    ),
    keeps="nothing",
    workloads={
        "enqueue_bulk": Plan(5_000, every=3),
        "enqueue_single": Plan(2_000, every=3),
        "drain_1": Plan(3_000, every=3),
        "drain_2": Plan(3_000, processes=2, every=3),
        "drain_sleep": Plan(3_000, options={"sleep_ms": 1}),
        "threads": Plan(3_000, options=THREADS, every=3),
        "processes": Plan(3_000, every=3),
        "pickup": Plan(300),
    },
    options={"pool": "prefork", "concurrency": 2},
    candidates={
        "drain_1": (
            {"concurrency": 1},
            {"concurrency": 4},
            THREADS,
            {"pool": "threads", "concurrency": 2},
        ),
    },
    unfinished=(("LLEN", "celery"), ("HLEN", "unacked")),
)
