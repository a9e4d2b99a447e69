"""Regime: how fast jobs come, how long the line is, and of how many types and priorities they are.

With a rate the worker is faster, and the line is nearly empty. Without one the producer keeps so
many jobs ahead of the worker, and both work as fast as they can.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.testbed import Testbed, Worker

WARM_UP_JOBS = 200


@dataclass(frozen=True, slots=True)
class Regime:
    """One way in which jobs come."""

    rate: int = 0  # jobs/s; 0: as many as are handled
    ahead: int = 0  # how many jobs the line is long, if there is no rate
    types: int = 1
    priorities: int = 1

    @property
    def names(self) -> list[str]:
        return [f"timed_{number:02d}" for number in range(self.types)]

    @contextmanager
    def at_work(self, testbed: Testbed, seconds: float) -> Generator[Worker]:
        """Start a worker and a producer, which goes on for so many seconds."""
        with (
            testbed.worker(names=self.names, timed=True, warm_up=WARM_UP_JOBS) as worker,
            testbed.driver(
                "produce",
                folder=worker.folder,
                names=self.names,
                rate=self.rate,
                ahead=self.ahead,
                priorities=self.priorities,
                seconds=seconds,
            ) as producer,
        ):
            producer.wait_until_ready()
            producer.send_start()
            yield worker
