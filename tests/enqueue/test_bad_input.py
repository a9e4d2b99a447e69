"""Bad input: a clear sentence before anything is written, and a database left as it was."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from howdah import BadInput, DuplicateJobType, PayloadTooLarge, Queue


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


PAYLOADS: list[tuple[Any, str]] = [
    ({"x": "a" * 300_000}, "has 300,009 bytes; the limit is 262,144. Store the data elsewhere"),
    ({"x": object()}, "is not JSON"),
    ({"x": {1, object()}}, "is not JSON"),
    ({"x": math.nan}, "contains nan, which JSON cannot hold"),
    ({"x": [1, {"y": -math.inf}]}, "contains -inf, which JSON cannot hold"),
    ({"x": "a\0b"}, "contains a NUL character, which PostgreSQL cannot hold"),
    ({"a\0b": 1}, "contains a NUL character"),
    ({"x": nested(50)}, "is nested more than 32 levels deep"),
    ({"x": "\ud800"}, "contains half a surrogate pair"),
    ([1, 2], "a payload is a mapping of arguments, not list"),
    ("text", "a payload is a mapping of arguments, not str"),
]


@pytest.mark.parametrize(("data", "complaint"), PAYLOADS)
async def test_a_payload_that_cannot_be_kept_is_refused(
    queue: Queue, data: Any, complaint: str
) -> None:
    with pytest.raises(BadInput, match=complaint):
        await queue.enqueue("mail", data)
    assert await queue.counts() == {}


async def test_a_payload_within_the_limits_is_kept_exactly(queue: Queue) -> None:
    data = {
        "null": None,
        "text": 'quotes " and \\u0000 as text, \u2028 and 🐘',
        "deep": nested(29),
        "huge": 2**70,
        "exact": 0.1,
        "large": "a" * 200_000,
    }
    handle = await queue.enqueue("mail", data)
    assert (await handle.job()).data == data


async def test_the_limit_is_the_databases_and_can_be_raised_there(queue: Queue, dsn: str) -> None:
    await queue.store.fetch(
        "update howdah.options set value = '1000000' where name = $1", "max_payload_bytes"
    )
    async with Queue(dsn) as other:
        await other.enqueue("mail", {"x": "a" * 300_000})
        with pytest.raises(PayloadTooLarge, match="the limit is 1,000,000"):
            await other.enqueue("mail", {"x": "a" * 1_000_000})


OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"priority": 2**31}, "priority lies between -2147483648 and 2147483647, not 2147483648"),
    ({"priority": -(2**31) - 1}, "priority lies between"),
    ({"priority": 1.5}, "priority is a whole number, not 1.5"),
    ({"priority": True}, "priority is a whole number, not True"),
    ({"run_at": datetime(2030, 1, 1)}, "has no time zone, so nobody can know when that is"),
    ({"run_at": "tomorrow"}, "run_at is a datetime, not 'tomorrow'"),
    ({"run_at": datetime.now(UTC), "delay": 1}, "give run_at or delay, not both"),
    ({"delay": timedelta(seconds=-1)}, "delay=-1.0 s is less than nothing"),
    ({"max_attempts": 0}, "max_attempts is at least 1, not 0"),
    ({"max_attempts": -3}, "max_attempts is at least 1, not -3"),
    ({"max_attempts": "3"}, "max_attempts is a whole number, not '3'"),
]


@pytest.mark.parametrize(("options", "complaint"), OPTIONS)
async def test_an_option_that_makes_no_sense_is_refused(
    queue: Queue, options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(BadInput, match=complaint):
        await queue.enqueue("mail", **options)
    assert await queue.counts() == {}


JOB_TYPES: list[tuple[Any, str]] = [
    ("", "a job type has 1 to 200 characters, this one has 0"),
    ("x" * 201, "a job type has 1 to 200 characters, this one has 201"),
    ("two\nlines", "a job type has no control characters"),
    ("nul\0", "a job type has no control characters"),
    ("\ud800", "half a surrogate pair"),
    (7, "a job type is text, not int"),
]


@pytest.mark.parametrize(("job_type", "complaint"), JOB_TYPES)
async def test_a_job_type_that_cannot_be_is_refused(
    queue: Queue, job_type: Any, complaint: str
) -> None:
    with pytest.raises(BadInput, match=complaint):
        await queue.enqueue(job_type)
    assert await queue.counts() == {}


HOSTILE = ["'; drop schema howdah cascade; --", '"quoted"', "größe 🐘", "%s $1 {}", "a,b", "\\"]


@pytest.mark.parametrize("job_type", HOSTILE)
async def test_a_hostile_name_is_only_a_name(queue: Queue, job_type: str) -> None:
    handle = await queue.enqueue(job_type, {"x": job_type})
    (job,) = await queue.jobs(job_type=job_type)
    assert (job.id, job.data) == (handle.id, {"x": job_type})
    (claimed,) = await queue.claim([job_type], worker_id=job_type)
    await queue.complete(claimed, {"said": job_type})
    assert await handle.result(timeout=10) == {"said": job_type}


async def test_every_way_in_measures_a_payload_alike(queue: Queue) -> None:
    """As PostgreSQL prints it: with a blank after each comma and colon."""
    data = {"x": [1] * 130_000}  # 260 kB as it is sent, 390 kB as it is printed
    with pytest.raises(PayloadTooLarge, match="has 390,007 bytes"):
        await queue.enqueue("mail", data)
    with pytest.raises(PayloadTooLarge, match="has 390,007 bytes"):
        await queue.enqueue_many([queue.draft("mail", data)])
    (printed,) = await queue.store.fetch("select octet_length($1::jsonb::text)", json.dumps(data))
    assert printed[0] == 390_007


async def test_one_bad_draft_in_a_stream_leaves_nothing_behind(queue: Queue) -> None:
    @queue.job
    async def mail(to: int) -> None: ...

    def stream() -> Any:
        for n in range(500):
            yield {"to": n if n != 400 else "nobody"}

    with pytest.raises(BadInput, match="Expected `int`, got `str`"):
        await mail.enqueue_many(stream())
    assert await queue.counts() == {}
    assert await mail.enqueue_many({"to": n} for n in range(500)) == 500


@pytest.mark.parametrize("kind", [RuntimeError, OSError, TimeoutError, ConnectionError])
async def test_a_stream_that_breaks_leaves_nothing_behind_and_says_what_broke(
    queue: Queue, kind: type[Exception]
) -> None:
    @queue.job
    async def mail(to: int) -> None: ...

    def stream() -> Any:
        yield mail.draft(to=1)
        raise kind("the source broke")

    with pytest.raises(kind, match=r"^the source broke$"):
        await mail.enqueue_many(stream())
    assert await queue.counts() == {}


async def test_two_functions_under_one_type_are_refused_and_both_are_named(queue: Queue) -> None:
    @queue.job(name="mail")
    async def first() -> None: ...

    with pytest.raises(DuplicateJobType, match=r"first already; give .*second another name"):

        @queue.job(name="mail")
        async def second() -> None: ...  # pyright: ignore[reportUnusedFunction]


def positional(*args: int) -> None: ...


def keywords(**kwargs: int) -> None: ...


SIGNATURES: list[tuple[Callable[..., object], str]] = [
    (positional, "cannot be filled"),
    (keywords, "cannot be filled"),
]


@pytest.mark.parametrize(("function", "complaint"), SIGNATURES)
def test_a_function_that_cannot_be_called_with_named_arguments_is_refused(
    function: Callable[..., object], complaint: str
) -> None:
    with pytest.raises(BadInput, match=complaint):
        Queue("postgresql://nowhere").job(name="f")(function)


CALLS: list[tuple[dict[str, Any], str]] = [
    ({"path": "a.png"}, "Missing required argument 'width'"),
    ({"path": "a.png", "width": "wide"}, "Expected `int`, got `str` - at `\\$.width`"),
    ({"path": "a.png", "width": 1, "height": 2}, "Unexpected keyword argument 'height'"),
]


@pytest.mark.parametrize(("arguments", "complaint"), CALLS)
async def test_a_wrong_argument_is_told_before_anything_is_sent(
    queue: Queue, arguments: dict[str, Any], complaint: str
) -> None:
    @queue.job
    async def resize(path: str, width: int) -> None: ...

    with pytest.raises(BadInput, match=complaint):
        await resize.enqueue(**arguments)
    with pytest.raises(BadInput, match=complaint):
        resize.draft(**arguments)
    with pytest.raises(BadInput, match=complaint):
        await queue.enqueue("resize", arguments)
    assert await queue.counts() == {}


def test_a_parameter_of_which_nothing_can_be_made_is_named(queue: Queue) -> None:
    @queue.job
    async def vague(n: int, x: object) -> None: ...

    with pytest.raises(BadInput, match="does not fit vague: object cannot be made of JSON"):
        vague.draft(n=1, x=1)
