"""A value that JSON cannot express: the error names the argument, its type and what to write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from howdah import BadInput, Queue, State


class Model:
    pk = 7


class Plain: ...


@dataclass
class Letter:
    to: Any


async def later() -> None: ...


VALUES: dict[str, tuple[Callable[[], Any], str, str]] = {
    "a path": (lambda: Path("a"), "", r"of type PosixPath: give str\("),
    "a model": (Model, "", r"of type Model: give its key \(.*\.pk\)"),
    "an object": (Plain, "", "of type Plain: give its id, or a dict"),
    "a generator": (lambda: (n for n in [1]), "", r"of type generator: give list\("),
    "a coroutine": (later, "", "of type coroutine: await it first"),
    "a function": (lambda: later, "", "of type function: give its name, or what it returns"),
    "deep inside": (lambda: {"x": [1, Letter(Path("b"))]}, "x[1].to", "of type PosixPath: give"),
    "an odd key": (lambda: {(1, 2): 3}, "", "of type dict: its keys must be text"),
}


@pytest.mark.parametrize(("make", "path", "message"), VALUES.values(), ids=list(VALUES))
async def test_the_error_names_the_argument(
    queue: Queue, make: Callable[[], Any], path: str, message: str
) -> None:
    @queue.job
    async def mail(n: int, value: Any) -> None: ...

    place = f"value.{path}".rstrip(".").replace("[", r"\[").replace("]", r"\]")
    with pytest.raises(BadInput, match=f"^the payload of mail is not JSON: {place} is {message}"):
        mail.draft(n=1, value=make())
    with pytest.raises(BadInput, match=f"is not JSON: {place} is {message}"):
        await queue.enqueue("other", {"n": 1, "value": make()})


async def test_a_bad_result_fails_the_job_with_the_reason(queue: Queue) -> None:
    @queue.job(max_attempts=1)
    def returns(kind: str) -> Any:
        return VALUES[kind][0]()

    handles = {kind: await returns.enqueue(kind=kind) for kind in VALUES}
    async with asyncio.timeout(60), queue.worker() as worker:
        await worker.run_until_idle()
    for kind, handle in handles.items():
        job = await handle.job()
        assert job.status is State.FAILED
        assert (job.last_error or "").startswith("the result of returns is not JSON: "), kind
        assert VALUES[kind][2].partition(": ")[0] in (job.last_error or ""), kind
