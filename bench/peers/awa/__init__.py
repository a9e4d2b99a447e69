"""Awa: a Rust core on PostgreSQL with Python handlers."""

from __future__ import annotations

from bench.peer import Peer, Plan

PEER = Peer(
    name="awa",
    title="Awa",
    kind="python",
    store="postgres",
    packages=("awa-pg==0.6.9",),
    settings=(
        "queue-storage engine; enqueue_many_copy 5,000 per call; max_workers 1,024 (its own number"
        " for jobs that do nothing), poll 50 ms, 10 connections, otherwise its defaults"
    ),
    keeps="rows in rotating partitions, for tens of seconds",
    workloads={
        "enqueue_bulk": Plan(50_000),
        "enqueue_single": Plan(1_000, every=3),
        "drain_1": Plan(20_000, every=3),
        "drain_2": Plan(20_000, processes=2, every=3),
        "drain_sleep": Plan(20_000, options={"sleep_ms": 1}),
        "pickup": Plan(300, every=3),
    },
    # Enqueued and completed entries share a partition, which is dropped as a whole.
    unfinished="""
        select (select count(*) from awa.ready_entries)
             - (select coalesce(sum(completed_count), 0) from awa.receipt_completion_batches)
             - (select count(*) from awa.done_entries)
    """,
    options={"max_workers": 1024, "enqueue_batch": 5000},
    candidates={
        "drain_1": tuple({"max_workers": number} for number in (256, 512, 2048)),
        "enqueue_bulk": ({"enqueue_batch": 1000}, {"enqueue_batch": 20_000}),
    },
)
