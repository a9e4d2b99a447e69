"""Sample jobs: the drafts of the jobs that the cases enqueue.

Payloads have a hundred bytes, as everywhere in the benchmark. The names are those of the job types
in case_driver.py. No worker takes jobs of the type `UNCLAIMED`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from datetime import timedelta

from bench.driver import payload
from howdah import Queue
from howdah.job import Draft

NOOP, WAITING, PICKUP, MIXED = "noop", "waiting", "pickup", "mixed"
WARM_UP, UNCLAIMED = "warm_up", "unclaimed"


def drafts(
    queue: Queue,
    names: Sequence[str],
    numbers: range,
    priorities: Sequence[int] = (100,),
    delay: timedelta | None = None,
) -> Generator[Draft]:
    """Make one draft per number. Types and priorities are used in turn."""
    for number in numbers:
        yield queue.draft(
            names[number % len(names)],
            payload(number),
            priority=priorities[number % len(priorities)],
            delay=delay,
        )
