"""Any value that is given as a reason is shown as text; exception groups name their members."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, NoReturn

import pytest

from howdah import BadInput, Cancel, Fail, JobContext, Queue, Retry, Snooze, State
from tests.run.hostile_jobs import ClassRaises, StrRaises


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
    "not JSON": ({"at": Path("a")}, "{'at': PosixPath('a')}"),
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


def test_odd_reasons_do_not_raise_and_are_cut() -> None:
    circular: list[Any] = []
    circular.append(circular)
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]
    for odd in (ClassRaises(), circular, deep, "x" * 10_000, ["x" * 10_000], "\0\ud800"):
        reason = Fail(odd).reason
        assert len(reason) <= 2_000
        reason.encode()


@pytest.mark.parametrize("after", ["5m", -1, float("nan"), True, [], object()])
def test_an_invalid_wait_is_refused(after: Any) -> None:
    with pytest.raises(BadInput, match=r"^after(=\S+)? in Retry\(…\)"):
        Retry("why", after=after)
    with pytest.raises(BadInput, match=r"^after(=\S+)? in Snooze\(…\)"):
        Snooze(after)


async def test_a_job_keeps_the_reason_as_text(queue: Queue) -> None:
    @queue.job(max_attempts=1)
    async def decide(ctx: JobContext, how: str) -> object:
        if how == "fail":
            return Fail({"code": 7})
        raise {"retry": Retry(OSError("away")), "cancel": Cancel(LookupError("no user"))}[how]

    handles = {how: await decide.enqueue(how=how) for how in ("fail", "retry", "cancel")}
    async with asyncio.timeout(60), queue.worker() as worker:
        await worker.run_until_idle()
    ended = {how: (await handle.job()).last_error for how, handle in handles.items()}
    assert ended == {
        "fail": '{"code":7}',
        "retry": "OSError: away",
        "cancel": "LookupError: no user",
    }


# ── groups of exceptions ──────────────────────────────────────────────────────────────────


async def raise_error(error: Exception) -> NoReturn:
    raise error


async def grouped(*errors: Exception) -> None:
    async with asyncio.TaskGroup() as group:
        for error in errors:
            group.create_task(raise_error(error))


GROUPS: dict[str, tuple[dict[str, Any], list[Exception], State, str]] = {
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


@pytest.mark.parametrize(("rules", "errors", "state", "message"), GROUPS.values(), ids=list(GROUPS))
async def test_a_group_is_judged_by_its_members(
    queue: Queue, rules: dict[str, Any], errors: list[Exception], state: State, message: str
) -> None:
    @queue.job(backoff=3600, **rules)
    async def together() -> None:
        await grouped(*errors)

    handle = await together.enqueue()
    async with asyncio.timeout(60), queue.worker() as worker:
        await worker.run_until_idle()
    job = await handle.job()
    assert job.status is state
    assert (job.last_error or "").startswith(message)


def test_a_group_of_groups_names_each_member_once() -> None:
    leaf = ValueError("at the bottom")
    group: Any = ExceptionGroup("one", [leaf, leaf])
    for _ in range(10):  # a thousand paths to one leaf
        group = ExceptionGroup("more", [group, group])
    assert Fail(group).reason == (
        "ValueError: at the bottom (in ExceptionGroup: more (2 sub-exceptions))"
    )
