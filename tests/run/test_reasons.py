"""Reasons: whatever is given as one is shown as text; groups of exceptions name their members."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, NoReturn

import pytest

from howdah import BadInput, Cancel, Fail, JobContext, Queue, Retry, Snooze, State
from tests.run.hostile_jobs import ClassLies, StrRaises


class Order:
    def __str__(self) -> str:
        return "order 7"


GIVEN: dict[str, tuple[Any, str]] = {
    "text": ("gone", "gone"),
    "nothing": (None, ""),
    "an exception": (ValueError("bad"), "ValueError: bad"),
    "an exception without text": (KeyError(), "KeyError"),
    "an exception that cannot be printed": (
        StrRaises(),
        "StrRaises: <StrRaises that cannot be printed>",
    ),
    "a class": (ValueError, "ValueError"),
    "a dict": ({"code": 7, "why": ["a", None]}, '{"code":7,"why":["a",null]}'),
    "a list": ([1, 2], "[1,2]"),
    "what JSON does not have": ({"at": Path("a")}, "{'at': PosixPath('a')}"),
    "a number": (404, "404"),
    "bytes": (b"no", "b'no'"),
    "an object": (Order(), "order 7"),
}


@pytest.mark.parametrize(("given", "text"), GIVEN.values(), ids=list(GIVEN))
def test_any_object_is_a_reason(given: Any, text: str) -> None:
    for outcome in (Retry(given), Fail(given), Cancel(given), Snooze(5, given)):
        assert outcome.reason == text
        assert type(outcome.reason) is str
        assert str(outcome) == text


def test_no_reason_raises_and_none_is_long() -> None:
    circle: list[Any] = []
    circle.append(circle)
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]
    for odd in (ClassLies(), circle, deep, "x" * 10_000, ["x" * 10_000], "\0\ud800"):
        reason = Fail(odd).reason
        assert len(reason) <= 2_000
        reason.encode()


@pytest.mark.parametrize("after", ["5m", -1, float("nan"), True, [], object()])
def test_a_wait_that_is_none_is_still_refused(after: Any) -> None:
    with pytest.raises(BadInput, match=r"^after in Retry\(…\)"):
        Retry("why", after=after)
    with pytest.raises(BadInput, match=r"^after in Snooze\(…\)"):
        Snooze(after)


async def test_a_job_keeps_the_reason_as_text(queue: Queue) -> None:
    @queue.job(max_attempts=1)
    async def says(ctx: JobContext, how: str) -> object:
        if how == "fail":
            return Fail({"code": 7})
        raise {"retry": Retry(OSError("away")), "cancel": Cancel(LookupError("no user"))}[how]

    handles = {how: await says.enqueue(how=how) for how in ("fail", "retry", "cancel")}
    async with asyncio.timeout(60), queue.worker() as worker:
        await worker.run_until_idle()
    ended = {how: (await handle.job()).last_error for how, handle in handles.items()}
    assert ended == {
        "fail": '{"code":7}',
        "retry": "OSError: away",
        "cancel": "LookupError: no user",
    }


# ── groups of exceptions ──────────────────────────────────────────────────────────────────


async def breaks(error: Exception) -> NoReturn:
    raise error


async def grouped(*errors: Exception) -> None:
    async with asyncio.TaskGroup() as group:
        for error in errors:
            group.create_task(breaks(error))


RULED: dict[str, tuple[dict[str, Any], list[Exception], State, str]] = {
    "by default it is retried": ({}, [OSError("a")], State.PENDING, "OSError: a (in "),
    "each member would be retried": (
        {"retry_on": OSError},
        [OSError("a"), TimeoutError("b")],
        State.PENDING,
        "OSError: a; TimeoutError: b (in ExceptionGroup: unhandled errors in a TaskGroup",
    ),
    "one member would not": (
        {"retry_on": OSError},
        [OSError("a"), ValueError("b")],
        State.FAILED,
        "OSError: a; ValueError: b (in ",
    ),
    "one member is in fail_on": (
        {"fail_on": ValueError},
        [OSError("a"), ValueError("b")],
        State.FAILED,
        "OSError: a; ValueError: b (in ",
    ),
    "the group itself is named": (
        {"retry_on": ExceptionGroup},
        [ValueError("b")],
        State.PENDING,
        "ValueError: b (in ",
    ),
    "many members": (
        {"fail_on": OSError},
        [OSError(str(n)) for n in range(9)],
        State.FAILED,
        "OSError: 0; OSError: 1; OSError: 2; … (in ",
    ),
    "an outcome": ({}, [Fail("for good")], State.FAILED, "for good"),
    "an outcome to cancel": ({}, [Cancel("not needed")], State.CANCELLED, "not needed"),
    "an outcome beside an error": (
        {"retry_on": ()},
        [Cancel("not needed"), OSError("a")],
        State.FAILED,
        "Cancel: not needed; OSError: a (in ",
    ),
}


@pytest.mark.parametrize(("rules", "errors", "state", "says"), RULED.values(), ids=list(RULED))
async def test_a_group_is_judged_by_its_members(
    queue: Queue, rules: dict[str, Any], errors: list[Exception], state: State, says: str
) -> None:
    @queue.job(backoff=3600, **rules)
    async def together() -> None:
        await grouped(*errors)

    handle = await together.enqueue()
    async with asyncio.timeout(60), queue.worker() as worker:
        await worker.run_until_idle()
    job = await handle.job()
    assert job.status is state
    assert (job.last_error or "").startswith(says)


def test_a_group_of_groups_names_each_member_once() -> None:
    leaf = ValueError("at the bottom")
    group: Any = ExceptionGroup("one", [leaf, leaf])
    for _ in range(10):  # a thousand ways to one leaf
        group = ExceptionGroup("more", [group, group])
    assert Fail(group).reason == (
        "ValueError: at the bottom (in ExceptionGroup: more (2 sub-exceptions))"
    )
