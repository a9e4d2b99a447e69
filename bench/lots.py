"""Lots: the jobs that bad days, memory and growth are measured with, as drafts.

Payloads of a hundred bytes, as everywhere in the benchmark. The names are those of the job types
in hands.py; nobody takes the last one.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from datetime import timedelta

from bench.driver import payload
from howdah import Queue
from howdah.job import Draft

NOOP, WAITING, PICKUP, MIXED = "noop", "waiting", "pickup", "mixed"
WARM_UP, NOBODYS = "warm_up", "nobodys"


def drafts(
    queue: Queue,
    names: Sequence[str],
    numbers: range,
    priorities: Sequence[int] = (100,),
    delay: timedelta | None = None,
) -> Generator[Draft]:
    """Make one draft per number, going round the types and the priorities."""
    for number in numbers:
        yield queue.draft(
            names[number % len(names)],
            payload(number),
            priority=priorities[number % len(priorities)],
            delay=delay,
        )
