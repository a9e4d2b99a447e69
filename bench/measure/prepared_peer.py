"""Prepared peer: a peer that is installed in an empty store, ready for one measurement."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString, cast

import psycopg

from bench.driver_process import DriverProcess, start_driver
from bench.install import Environment, Unavailable
from bench.peer import Peer, Plan
from bench.redis import Redis
from bench.server import Postgres


class InvalidMeasurement(Exception):
    """A measurement that does not count: jobs were lost, ran twice or are left over."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The result of one measurement: seconds for so many jobs, or pickup times."""

    jobs: int
    seconds: float = 0.0
    pickups_ms: tuple[float, ...] = ()


class PreparedPeer:
    """A peer in an empty store."""

    def __init__(
        self, peer: Peer, environment: Environment, address: str, postgres: Postgres, redis: Redis
    ) -> None:
        self.peer = peer
        self._environment = environment
        self.address = address
        self._postgres = postgres
        self._redis = redis

    @contextmanager
    def driver(
        self, verb: str, jobs: int = 0, plan: Plan | None = None, calls_folder: Path | None = None
    ) -> Generator[DriverProcess]:
        arguments: dict[str, Any] = {
            "address": self.address,
            "jobs": jobs,
            "options": dict(plan.options) if plan else {},
        }
        with start_driver(self._environment, verb, arguments, calls_folder) as driver:
            yield driver

    def make_quiet(self, *, vacuum: bool) -> None:
        """Wait until the server has no background work left. Comes right before an interval."""
        if self.peer.store == "postgres":
            self._postgres.make_quiet(self.address, vacuum=vacuum)
        else:
            self._redis.make_quiet()

    def run(self, verb: str, jobs: int, plan: Plan | None = None) -> None:
        """Run a verb of the driver, and measure nothing."""
        with self.driver(verb, jobs, plan) as driver:
            driver.wait_until_ready()
            driver.send_start()
            driver.read("done")

    def measure(self, verb: str, plan: Plan, *, vacuum: bool) -> Timing:
        """Run a verb of the driver on a quiet server, and return what the driver measured."""
        with self.driver(verb, plan.jobs, plan) as driver:
            driver.wait_until_ready()
            self.make_quiet(vacuum=vacuum)
            driver.send_start()
            return Timing(plan.jobs, float(driver.read("seconds")))

    def unfinished(self) -> int:
        if isinstance(self.peer.unfinished, str):
            return self._count(self.peer.unfinished)
        return self._redis.count(self.peer.unfinished)

    def check_finished(self, jobs: int) -> None:
        """Compare the number of finished jobs, where the peer keeps them."""
        if self.peer.finished and (finished := self._count(self.peer.finished)) != jobs:
            raise InvalidMeasurement(f"{finished} of {jobs} jobs are finished")

    def _count(self, sql: str) -> int:
        with psycopg.connect(self.address, autocommit=True) as connection:
            row = connection.execute(cast(LiteralString, sql)).fetchone()
        assert row is not None
        return int(row[0])


@contextmanager
def prepare(
    peer: Peer, environment: Environment, postgres: Postgres, redis: Redis | None
) -> Generator[PreparedPeer]:
    """Give a peer an empty store, and install it there."""
    with ExitStack() as stack:
        if peer.store == "postgres":
            address = stack.enter_context(postgres.database())
        elif redis is None:
            raise Unavailable("it needs Redis, which is not running")
        else:
            redis.empty()
            address = str(redis.path)
        prepared = PreparedPeer(peer, environment, address, postgres, cast(Redis, redis))
        with prepared.driver("install") as driver:
            driver.read("done")
        yield prepared
