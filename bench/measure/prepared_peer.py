"""Prepared peer: a peer that is installed in an empty store, ready for one measurement."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.driver_process import DriverProcess, start_driver
from bench.install import Environment
from bench.measure.store import Store, empty_store
from bench.measure.usage import Usage, read_usage
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
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class PreparedPeer:
    """A peer in an empty store."""

    peer: Peer
    environment: Environment
    store: Store

    @contextmanager
    def driver(
        self,
        verb: str,
        jobs: int = 0,
        plan: Plan | None = None,
        calls_folder: Path | None = None,
        *,
        holds: bool = False,
    ) -> Generator[DriverProcess]:
        arguments: dict[str, Any] = {
            "address": self.store.address,
            "jobs": jobs,
            "holds": holds,
            "options": {**self.peer.options, **(plan.options if plan else {})},
        }
        with start_driver(self.environment, verb, arguments, calls_folder) as driver:
            yield driver

    def usage(self, processes: Sequence[DriverProcess]) -> Usage:
        """Return what the server and these processes of the peer used up to now."""
        return read_usage(self.store, processes)

    def run(self, verb: str, jobs: int, plan: Plan | None = None) -> None:
        """Run a verb of the driver, and measure nothing."""
        with self.driver(verb, jobs, plan) as driver:
            driver.wait_until_ready()
            driver.send_start()
            driver.read("done")

    def measure(self, verb: str, plan: Plan, *, vacuum: bool) -> Timing:
        """Run a verb of the driver on a quiet server, and return what the driver measured."""
        with self.driver(verb, plan.jobs, plan, holds=True) as driver:
            driver.wait_until_ready()
            self.store.make_quiet(vacuum=vacuum)
            before = self.usage([driver])
            driver.send_start()
            seconds = float(driver.read("seconds"))
            return Timing(plan.jobs, seconds, usage=self.usage([driver]).since(before))

    def unfinished(self) -> int:
        return self.store.count(self.peer.unfinished)

    def check_finished(self, jobs: int) -> None:
        """Compare the number of finished jobs, where the peer keeps them."""
        if self.peer.finished and (finished := self.store.count(self.peer.finished)) != jobs:
            raise InvalidMeasurement(f"{finished} of {jobs} jobs are finished")


@contextmanager
def prepare(
    peer: Peer, environment: Environment, postgres: Postgres, redis: Redis | None
) -> Generator[PreparedPeer]:
    """Give a peer an empty store, and install it there."""
    with empty_store(peer, postgres, redis) as store:
        prepared = PreparedPeer(peer, environment, store)
        with prepared.driver("install") as driver:
            driver.read("done")
        yield prepared
