"""Celery: the best known Python job queue, on Redis."""

from __future__ import annotations

from bench.peer import Peer, Plan

PREFORK = {"pool": "prefork", "concurrency": 2}

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
        "enqueue_bulk": Plan(10_000),
        "enqueue_single": Plan(2_000),
        "drain_1": Plan(5_000, options=PREFORK),
        "drain_2": Plan(5_000, processes=2, options=PREFORK),
        "threads": Plan(5_000, options={"pool": "threads", "concurrency": 8}),
        "processes": Plan(5_000, options=PREFORK),
        "pickup": Plan(300, options=PREFORK),
    },
    unfinished=(("LLEN", "celery"), ("HLEN", "unacked")),
)
