"""Peers: which rules each peer has, how it has them, and how much is measured.

The settings are the best ones that were found for each rule. A peer that has no such rule says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bench.install import Environment
from bench.install import install as install_peer
from bench.peer import Peer
from bench.peers.registry import PEERS as COMPARED_PEERS


@dataclass(frozen=True, slots=True)
class Offer:
    """How a peer has a rule; slow peers get fewer jobs."""

    how: str
    jobs: int
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    checked: int = 1000  # jobs of a millisecond
    every: int = 1  # 3: in every third turn


@dataclass(frozen=True, slots=True)
class Contender:
    """A peer; `lacks` says for each rule that it has not what it has instead."""

    peer: Peer
    offers: Mapping[str, Offer]
    lacks: Mapping[str, str] = field(default_factory=dict[str, str])


# Graphile Worker asks for the next job before it has written that the last one is complete, so a
# worker finds the queue locked, and waits for the poll interval.
AT_ONCE = {"local_queue": 0, "complete_delay_ms": -1, "concurrent_jobs": 1, "poll_ms": 1}

DBOS = Peer(
    name="dbos",
    title="DBOS",
    kind="python",
    store="postgres",
    packages=("dbos==3.4.0", "psycopg[binary]==3.3.*"),
    settings="async workflows without steps; polling_interval_sec 0.001, pool of 20",
    keeps="the workflow row",
    workloads={},
    unfinished=(
        "select count(*) from dbos.workflow_status where status in ('ENQUEUED', 'PENDING')"
    ),
    finished="select count(*) from dbos.workflow_status where status = 'SUCCESS'",
    options={"polling_interval": 0.001, "connections": 20, "enqueue_batch": 1000},
)

HOWDAH = Contender(
    replace(COMPARED_PEERS["howdah"], options={"concurrency": 100}),
    {
        "keys_1000": Offer("`key`, one at a time", 100_000),
        "ordered_1": Offer("`key`, `ordered`", 100_000),
        "limit_50": Offer("`limit`, at_once 50", 100_000),
        "rate_200": Offer("`limit`, `Rate(200)`: 200 in a second, and a burst of 11", 1000),
    },
)

CONTENDERS = (
    HOWDAH,
    Contender(
        COMPARED_PEERS["graphile_worker"],
        {
            "keys_1000": Offer("named queues, which are ordered", 20_000),
            "ordered_1": Offer("a named queue", 500, AT_ONCE, checked=300, every=2),
        },
        {
            "limit_50": "concurrentJobs is per process",
            "rate_200": "no limit on starts",
        },
    ),
    Contender(
        COMPARED_PEERS["pg_boss"],
        {
            "keys_1000": Offer(
                "policy singleton with a singletonKey",
                20_000,
                {"policy": "singleton", "batch_size": 1000, "local_concurrency": 1},
            ),
            "ordered_1": Offer(
                "policy key_strict_fifo with a singletonKey",
                300,
                {"batch_size": 1, "local_concurrency": 1},
                checked=200,
                every=2,
            ),
            "limit_50": Offer(
                "groupConcurrency 50, one group",
                10_000,
                {"batch_size": 25, "local_concurrency": 2},
                every=2,
            ),
        },
        {"rate_200": "limits sending (throttle), not starts"},
    ),
    Contender(
        replace(
            COMPARED_PEERS["pgqueuer"],
            options={"batch_size": 500, "enqueue_batch": 5000, "dequeue_timeout_ms": 2},
        ),
        {
            "keys_1000": Offer("an entrypoint per key, concurrency_limit 1", 10_000),
            # An ending is written when so many wait, or after 0.1 s.
            "ordered_1": Offer(
                "an entrypoint, concurrency_limit 1", 500, {"batch_size": 1}, checked=300, every=2
            ),
            "limit_50": Offer(
                "an entrypoint, concurrency_limit 50", 10_000, {"batch_size": 50}, every=2
            ),
        },
        {"rate_200": "no limit on starts since version 1"},
    ),
    Contender(
        COMPARED_PEERS["procrastinate"],
        {
            "keys_1000": Offer("lock, which is ordered", 1000, checked=500, every=3),
            "ordered_1": Offer("lock", 300, checked=200, every=3),
        },
        {"limit_50": "concurrency is per worker", "rate_200": "no limit on starts"},
    ),
    Contender(
        DBOS,
        {
            "keys_1000": Offer("a partitioned queue, partition_concurrency 1", 1000, every=3),
            "ordered_1": Offer("one partition, partition_concurrency 1", 100, checked=100, every=3),
            "limit_50": Offer("a queue, global_concurrency 50", 1000, every=3),
            "rate_200": Offer("a queue, limiter 200 in any second", 1000),
        },
    ),
    Contender(
        replace(COMPARED_PEERS["chancy"], options={"concurrency": 500, "enqueue_batch": 1000}),
        {
            "limit_50": Offer("concurrency 50 of a queue, per worker", 5000, every=3),
            "rate_200": Offer("rate_limit 200, in seconds of the clock", 1000),
        },
        {
            "keys_1000": "unique_key refuses the second job, it does not let it wait",
            "ordered_1": "no key; a queue of one worker with concurrency 1",
        },
    ),
)
PEERS = {contender.peer.name: contender for contender in CONTENDERS}


def install(peer: Peer) -> Environment:
    """Make the peer's environment, with its driver for these benchmarks."""
    environment = install_peer(peer)
    program, *_, last = environment.command
    if peer.kind == "node":
        path = last.replace(
            f"/peers/{peer.name}/driver.mjs", f"/admit/drivers/{peer.name}_driver.mjs"
        )
        return replace(environment, command=(program, path))
    return replace(environment, command=(program, "-m", f"bench.admit.drivers.{peer.name}_driver"))
