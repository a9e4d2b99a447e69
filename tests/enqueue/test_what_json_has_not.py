"""What JSON does not have: which argument, of which type, and what to write instead."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from howdah import BadInput, Queue, State


class User:
    pk = 7


class Thing: ...


@dataclass
class Letter:
    to: Any


async def later() -> None: ...


VALUES: dict[str, tuple[Callable[[], Any], str, str]] = {
    "a path": (lambda: Path("a"), "", r"of type PosixPath: give str\("),
    "a model": (User, "", r"of type User: give its key \(.*\.pk\)"),
    "an object": (Thing, "", "of type Thing: give what identifies it, such as an id"),
    "a generator": (lambda: (n for n in [1]), "", r"of type generator: give list\("),
    "a coroutine": (later, "", "of type coroutine: await it first"),
    "a function": (lambda: later, "", "of type function: give its name, or what it returns"),
    "deep inside": (lambda: {"x": [1, Letter(Path("b"))]}, "x[1].to", "of type PosixPath: give"),
    "an odd key": (lambda: {(1, 2): 3}, "", "of type dict: its keys must be text"),
}


@pytest.mark.parametrize(("make", "where", "says"), VALUES.values(), ids=list(VALUES))
async def test_an_argument_is_named(
    queue: Queue, make: Callable[[], Any], where: str, says: str
) -> None:
    @queue.job
    async def mail(n: int, what: Any) -> None: ...

    place = f"what.{where}".rstrip(".").replace("[", r"\[").replace("]", r"\]")
    with pytest.raises(BadInput, match=f"^the payload of mail is not JSON: {place} is {says}"):
        mail.draft(n=1, what=make())
    with pytest.raises(BadInput, match=f"is not JSON: {place} is {says}"):
        await queue.enqueue("other", {"n": 1, "what": make()})


async def test_a_result_is_told_in_the_job(queue: Queue) -> None:
    @queue.job(max_attempts=1)
    def returns(what: str) -> Any:
        return VALUES[what][0]()

    handles = {what: await returns.enqueue(what=what) for what in VALUES}
    async with asyncio.timeout(60), queue.worker() as worker:
        await worker.run_until_idle()
    for what, handle in handles.items():
        job = await handle.job()
        assert job.status is State.FAILED
        assert (job.last_error or "").startswith("the result of returns is not JSON: "), what
        assert VALUES[what][2].partition(": ")[0] in (job.last_error or ""), what
