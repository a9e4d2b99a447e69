"""A wrong call at run time: BadInput names the argument, and nothing is written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import pytest

from howdah import BadInput, JobContext, Queue, SyncQueue

pytestmark = pytest.mark.slow

Call = Callable[[Any], Awaitable[Any]]

WRONG: dict[str, tuple[Call, str]] = {
    "an unknown name": (lambda j: j.enqueue(paht="a.png", width=1), "resize.*'paht'"),
    "a missing argument": (lambda j: j.enqueue(path="a.png"), "resize.*'width'"),
    "no argument at all": (lambda j: j.enqueue(), "resize.*'path'"),
    "too many": (lambda j: j.enqueue("a.png", 1, True, 2), "resize takes 3 arguments, got 4"),
    "one given twice": (lambda j: j.enqueue("a.png", path="b", width=1), "'path' twice"),
    "a wrong type": (lambda j: j.enqueue("a.png", "wide"), r"resize.*int.*got `str`.*width"),
    "a wrong type inside": (
        lambda j: j.enqueue("a.png", 1, tags=["a", 2]),
        r"resize.*got `int`.*tags",
    ),
    "None": (lambda j: j.enqueue(None, 1), r"resize.*got `null`.*path"),
    "the context": (lambda j: j.enqueue("a.png", 1, ctx=None), "resize.*'ctx'"),
    "a mapping with an unknown name": (
        lambda j: j.enqueue_many([{"path": "a", "width": 1, "depth": 2}]),
        "resize.*'depth'",
    ),
    "a mapping with a wrong type": (
        lambda j: j.enqueue_many([{"path": "a", "width": None}]),
        "resize.*width",
    ),
    "something that is no draft": (lambda j: j.enqueue_many(["a.png"]), "drafts.*not str"),
    "a wrong option": (lambda j: j.options(priority="high").enqueue("a", 1), "priority.*'high'"),
    "a naive time": (
        lambda j: j.options(run_at=datetime(2100, 1, 1)).enqueue("a", 1),
        "no time zone",
    ),
    "a wrong connection": (lambda j: j.options(conn=3).enqueue("a", 1), "conn=builtins.int"),
}


@pytest.mark.parametrize(("call", "message"), WRONG.values(), ids=list(WRONG))
async def test_the_error_of_a_wrong_call_names_the_argument(
    queue: Queue, call: Call, message: str
) -> None:
    @queue.job
    async def resize(ctx: JobContext, path: str, width: int, tags: list[str] | None = None) -> None:
        del ctx, path, width, tags

    with pytest.raises(BadInput, match=message):
        await call(resize)
    assert await queue.counts() == {}


@pytest.mark.parametrize(("call", "message"), WRONG.values(), ids=list(WRONG))
def test_a_sync_queue_raises_the_same_error(
    dsn: str, call: Callable[[Any], Any], message: str
) -> None:
    with SyncQueue(dsn) as sync:

        @sync.job
        def resize(ctx: JobContext, path: str, width: int, tags: list[str] | None = None) -> None:
            del ctx, path, width, tags

        with pytest.raises(BadInput, match=message):
            call(resize)
        assert sync.counts() == {}


async def test_a_call_by_name_is_checked_where_the_function_is_known(queue: Queue) -> None:
    @queue.job
    async def resize(path: str, width: int) -> None: ...

    with pytest.raises(BadInput, match=r"resize.*got `str`.*width"):
        await queue.enqueue("resize", {"path": "a.png", "width": "wide"})
    with pytest.raises(BadInput, match="a job type must be text, not JobType"):
        await queue.enqueue(resize, {})  # pyright: ignore[reportArgumentType]
    assert await queue.counts() == {}
