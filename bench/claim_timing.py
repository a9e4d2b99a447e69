"""Claim timing: how long each claim of a worker took, written by the worker process.

A worker of case_driver.py calls `time_claims`. The case reads the file of that process with
`read_claim_timings`. The call that goes to the database is timed: this is what a worker waits for.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from howdah.job import Claim
from howdah.store import claim as store_claim

SUFFIX = ".claims"
FIELDS = 3  # of eight bytes each


class ClaimTiming(NamedTuple):
    """One claim of a worker."""

    began_ns: int
    took_ns: int
    jobs: int


def time_claims(folder: Path) -> None:
    """Write down each claim of this process."""
    file = (folder / f"{os.getpid()}{SUFFIX}").open("ab", buffering=0)

    def timed(claim: Callable[..., Awaitable[list[Claim]]]) -> Callable[..., object]:
        async def timed_claim(*arguments: object) -> list[Claim]:
            began = time.monotonic_ns()
            claims = await claim(*arguments)
            timing = ClaimTiming(began, time.monotonic_ns() - began, len(claims))
            file.write(b"".join(number.to_bytes(8, "little") for number in timing))
            return claims

        return timed_claim

    store_claim.claim = timed(store_claim.claim)  # pyright: ignore[reportAttributeAccessIssue]
    store_claim.claim_next = timed(store_claim.claim_next)  # pyright: ignore[reportAttributeAccessIssue]


def read_claim_timings(folder: Path) -> list[ClaimTiming]:
    """Return the claims of all processes that wrote to this folder, the earliest first."""
    timings: list[ClaimTiming] = []
    size = FIELDS * 8
    for path in folder.glob(f"*{SUFFIX}"):
        content = path.read_bytes()
        numbers = memoryview(content[: len(content) // size * size]).cast("q")
        timings += map(ClaimTiming, numbers[0::FIELDS], numbers[1::FIELDS], numbers[2::FIELDS])
    return sorted(timings)
