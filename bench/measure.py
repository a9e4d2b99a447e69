"""Measure: do one work once with one peer, and be sure that it was done.

Every peer is counted alike. Enqueueing is timed inside the driver, from the first call to the
last answer. A drain begins with all jobs waiting and all workers ready; it lasts from the first
call of a handler until the store says that every job is settled, so starting up is not in it and
the last acknowledgement is. A pickup is the time from before the enqueue call to the handler's
first line, in two processes on an otherwise idle machine; the next job is sent a few milliseconds
after the one before it was picked up, when nothing is left to do.

Each measurement has a fresh database (or an emptied Redis) and begins after a checkpoint. A drain
counts only if every job ran once: the number of calls and the sum of the job numbers are right,
nothing is left over, and as many are finished as there were, where finished jobs are kept.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString, cast

import psycopg

from bench.install import Environment, Unavailable
from bench.peer import Peer, Plan
from bench.process import Broken, Driver, started
from bench.redis import Redis
from bench.server import Postgres
from bench.tally import Reader
from bench.works import WORKS

LONGEST_DRAIN = 240.0
SETTLED_WITHIN = 60.0  # after the last call of a handler
TICK = 0.002
PICKUP_TICK = 0.001
PAUSES = (0.001, 0.003)  # seconds from a pickup to the next job
WARM_UP = 20  # jobs before the pickup of others is measured


class Wrong(Exception):
    """A measurement that does not count: jobs were lost, run twice or left over."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What one measurement gave: seconds for so many jobs, or pickup times."""

    jobs: int
    seconds: float = 0.0
    pickups_ms: tuple[float, ...] = ()


class Ground:
    """Where one measurement takes place: a peer, installed in an empty store."""

    def __init__(
        self, peer: Peer, environment: Environment, address: str, postgres: Postgres, redis: Redis
    ) -> None:
        self.peer = peer
        self._environment = environment
        self._address = address
        self._postgres = postgres
        self._redis = redis

    @contextmanager
    def driver(
        self, verb: str, jobs: int = 0, plan: Plan | None = None, tally: Path | None = None
    ) -> Generator[Driver]:
        arguments: dict[str, Any] = {
            "address": self._address,
            "jobs": jobs,
            "options": dict(plan.options) if plan else {},
        }
        with started(self._environment, verb, arguments, tally) as driver:
            yield driver

    def timed(self, verb: str, jobs: int, plan: Plan | None = None) -> float:
        """Let a driver do something; returns the seconds it took by its own clock."""
        with self.driver(verb, jobs, plan) as driver:
            driver.wait_until_ready()
            if self.peer.store == "postgres":
                self._postgres.checkpoint()
            driver.go()
            return float(driver.hear("seconds"))

    def unfinished(self) -> int:
        if isinstance(self.peer.unfinished, str):
            return self._count(self.peer.unfinished)
        return self._redis.count(self.peer.unfinished)

    def check_finished(self, jobs: int) -> None:
        if self.peer.finished and (found := self._count(self.peer.finished)) != jobs:
            raise Wrong(f"{found} of {jobs} jobs are finished")

    def _count(self, sql: str) -> int:
        with psycopg.connect(self._address, autocommit=True) as connection:
            row = connection.execute(cast(LiteralString, sql)).fetchone()
        assert row is not None
        return int(row[0])


@contextmanager
def prepared(
    peer: Peer, environment: Environment, postgres: Postgres, redis: Redis | None
) -> Generator[Ground]:
    """Give a peer an empty store and let it install itself there."""
    with ExitStack() as stack:
        if peer.store == "postgres":
            address = stack.enter_context(postgres.database())
        elif redis is None:
            raise Unavailable("it needs Redis")
        else:
            redis.empty()
            address = str(redis.path)
        ground = Ground(peer, environment, address, postgres, cast(Redis, redis))
        with ground.driver("install") as driver:
            driver.hear("done")
        yield ground


def measure(work: str, plan: Plan, ground: Ground) -> Taken:
    """Do one work once."""
    match WORKS[work].kind:
        case "enqueue":
            return enqueue(work, plan, ground)
        case "drain":
            return drain(plan, ground)
        case "floor":
            return floor(plan, ground)
        case "pickup":
            return pickup(plan, ground)


def enqueue(verb: str, plan: Plan, ground: Ground) -> Taken:
    seconds = ground.timed(verb, plan.jobs, plan)
    if (found := ground.unfinished()) != plan.jobs:
        raise Wrong(f"{found} of {plan.jobs} jobs were enqueued")
    return Taken(plan.jobs, seconds)


def floor(plan: Plan, ground: Ground) -> Taken:
    ground.timed("enqueue_bulk", plan.jobs, plan)
    seconds = ground.timed("floor", plan.jobs, plan)
    if left := ground.unfinished():
        raise Wrong(f"{left} of {plan.jobs} jobs are left over")
    ground.check_finished(plan.jobs)
    return Taken(plan.jobs, seconds)


def drain(plan: Plan, ground: Ground) -> Taken:
    ground.timed("enqueue_bulk", plan.jobs, plan)
    with _workers(plan, ground) as (workers, reader):
        began, ended = _until_settled(plan.jobs, ground, workers, reader)
        count = reader.count()
    expected = plan.jobs * (plan.jobs - 1) // 2
    if (count.calls, count.sum) != (plan.jobs, expected):
        raise Wrong(f"handlers ran {count.calls} times for {plan.jobs} jobs")
    ground.check_finished(plan.jobs)
    return Taken(plan.jobs, (ended - began) / 1e9)


def pickup(plan: Plan, ground: Ground) -> Taken:
    with _workers(plan, ground) as (workers, reader):
        ground.timed("enqueue_single", WARM_UP)
        _until_settled(WARM_UP, ground, workers, reader)
        with ground.driver("send", plan.jobs + WARM_UP) as sender:
            sender.wait_until_ready()
            sender.go()
            for sent in range(1, plan.jobs + WARM_UP + 1):
                time.sleep(random.uniform(*PAUSES))
                sender.go()
                _until_picked_up(sent, workers, reader)
            times = reader.pickups_ms()
    return Taken(plan.jobs, pickups_ms=tuple(times[WARM_UP:]))


@contextmanager
def _workers(plan: Plan, ground: Ground) -> Generator[tuple[list[Driver], Reader]]:
    """Start the workers, and let them loose once all are ready."""
    with tempfile.TemporaryDirectory(prefix="bench-tally-") as folder, ExitStack() as stack:
        workers = [
            stack.enter_context(ground.driver("work", plan=plan, tally=Path(folder)))
            for _ in range(plan.processes)
        ]
        for worker in workers:
            worker.wait_until_ready()
        for worker in workers:
            worker.go()
        yield workers, Reader(Path(folder))


def _until_settled(
    jobs: int, ground: Ground, workers: list[Driver], reader: Reader
) -> tuple[int, int]:
    """Wait for handlers, then for the store; returns when the first call was and when all was done.

    The store is asked only once every handler was called, and the handlers seldom until most were:
    asking costs the peer time.
    """
    until = time.monotonic() + LONGEST_DRAIN
    while (count := reader.count()).calls < jobs:
        problem = f"{count.calls} of {jobs} jobs had run after {LONGEST_DRAIN:.0f} s"
        _wait(workers, until, problem, TICK if count.calls > 0.9 * jobs else 10 * TICK)
    until = time.monotonic() + SETTLED_WITHIN
    while True:
        asked = time.monotonic_ns()
        if not (left := ground.unfinished()):
            return reader.count().first_ns, asked
        _wait(workers, until, f"{left} of {jobs} jobs were not settled at the end")


def _until_picked_up(jobs: int, workers: list[Driver], reader: Reader) -> None:
    until = time.monotonic() + SETTLED_WITHIN
    while (found := reader.pickups()) < jobs:
        _wait(workers, until, f"{found} of {jobs} jobs were picked up", PICKUP_TICK)


def _wait(workers: list[Driver], until: float, problem: str, tick: float = TICK) -> None:
    for worker in workers:
        worker.check_alive()
    if time.monotonic() > until:
        raise Broken(problem)
    time.sleep(tick)
