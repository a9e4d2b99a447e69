"""Bad input gets a clear error before anything is written."""

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
    ({"x": nested(50)}, "is nested more than 32 levels deep: use fewer levels"),
    ({"x": "\ud800"}, "contains half a surrogate pair, which is not text: remove it"),
    ([1, 2], "a payload must be a mapping of arguments, not list"),
    ("text", "a payload must be a mapping of arguments, not str"),
]


@pytest.mark.parametrize(("data", "message"), PAYLOADS)
async def test_a_bad_payload_is_refused(queue: Queue, data: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        await queue.enqueue("mail", data)
    assert await queue.counts() == {}


async def test_a_payload_within_the_limits_is_stored_exactly(queue: Queue) -> None:
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


async def test_the_payload_limit_is_an_option_of_the_database(queue: Queue, dsn: str) -> None:
    await queue.store.fetch(
        "update howdah.options set value = '1000000' where name = $1", "max_payload_bytes"
    )
    async with Queue(dsn) as other:
        await other.enqueue("mail", {"x": "a" * 300_000})
        with pytest.raises(PayloadTooLarge, match="the limit is 1,000,000"):
            await other.enqueue("mail", {"x": "a" * 1_000_000})


OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"priority": 2**31}, "priority must be between -2147483648 and 2147483647, not 2147483648"),
    ({"priority": -(2**31) - 1}, "priority must be between"),
    ({"priority": 1.5}, "priority must be a whole number, not 1.5"),
    ({"priority": True}, "priority must be a whole number, not True"),
    ({"run_at": datetime(2030, 1, 1)}, "has no time zone: use datetime"),
    ({"run_at": "tomorrow"}, "run_at must be a datetime, not 'tomorrow'"),
    ({"run_at": datetime.now(UTC), "delay": 1}, "give run_at or delay, not both"),
    ({"delay": timedelta(seconds=-1)}, "delay=-1.0 s is negative"),
    ({"max_attempts": 0}, "max_attempts must be at least 1, not 0"),
    ({"max_attempts": -3}, "max_attempts must be at least 1, not -3"),
    ({"max_attempts": "3"}, "max_attempts must be a whole number, not '3'"),
]


@pytest.mark.parametrize(("options", "message"), OPTIONS)
async def test_a_bad_option_is_refused(queue: Queue, options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        await queue.enqueue("mail", **options)
    assert await queue.counts() == {}


JOB_TYPES: list[tuple[Any, str]] = [
    ("", "a job type must have 1 to 200 characters, this one has 0"),
    ("x" * 201, "a job type must have 1 to 200 characters, this one has 201"),
    ("two\nlines", "a job type must have no control characters"),
    ("nul\0", "a job type must have no control characters"),
    ("\ud800", "half a surrogate pair"),
    (7, "a job type must be text, not int"),
]


@pytest.mark.parametrize(("job_type", "message"), JOB_TYPES)
async def test_a_bad_job_type_is_refused(queue: Queue, job_type: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        await queue.enqueue(job_type)
    assert await queue.counts() == {}


HOSTILE = ["'; drop schema howdah cascade; --", '"quoted"', "größe 🐘", "%s $1 {}", "a,b", "\\"]


@pytest.mark.parametrize("job_type", HOSTILE)
async def test_special_characters_in_a_job_type_are_stored_as_text(
    queue: Queue, job_type: str
) -> None:
    handle = await queue.enqueue(job_type, {"x": job_type})
    (job,) = await queue.jobs(job_type=job_type)
    assert (job.id, job.data) == (handle.id, {"x": job_type})
    (claimed,) = await queue.claim([job_type], worker_id=job_type)
    await queue.complete(claimed, {"result": job_type})
    assert await handle.result(timeout=10) == {"result": job_type}


async def test_every_enqueue_call_measures_a_payload_in_the_same_way(queue: Queue) -> None:
    """The size is that of PostgreSQL's text, with a blank after each comma and colon."""
    data = {"x": [1] * 130_000}  # 260 kB as sent, 390 kB as text in PostgreSQL
    with pytest.raises(PayloadTooLarge, match="has 390,007 bytes"):
        await queue.enqueue("mail", data)
    with pytest.raises(PayloadTooLarge, match="has 390,007 bytes"):
        await queue.enqueue_many([queue.draft("mail", data)])
    (printed,) = await queue.store.fetch("select octet_length($1::jsonb::text)", json.dumps(data))
    assert printed[0] == 390_007


async def test_one_bad_draft_in_a_stream_enqueues_nothing(queue: Queue) -> None:
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
async def test_an_error_in_a_stream_is_raised_and_nothing_is_enqueued(
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


async def test_two_functions_for_one_type_are_refused_with_both_names(queue: Queue) -> None:
    @queue.job(name="mail")
    async def first() -> None: ...

    with pytest.raises(DuplicateJobType, match=r"first already; give .*second another name"):

        @queue.job(name="mail")
        async def second() -> None: ...  # pyright: ignore[reportUnusedFunction]


def positional(*args: int) -> None: ...


def keywords(**kwargs: int) -> None: ...


SIGNATURES: list[tuple[Callable[..., object], str]] = [
    (positional, "a payload has named arguments only"),
    (keywords, "a payload has named arguments only"),
]


@pytest.mark.parametrize(("function", "message"), SIGNATURES)
def test_a_function_that_cannot_be_called_with_named_arguments_is_refused(
    function: Callable[..., object], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        Queue("postgresql://nowhere").job(name="f")(function)


CALLS: list[tuple[dict[str, Any], str]] = [
    ({"path": "a.png"}, "Missing required argument 'width'"),
    ({"path": "a.png", "width": "wide"}, "Expected `int`, got `str` - at `\\$.width`"),
    ({"path": "a.png", "width": 1, "height": 2}, "Unexpected keyword argument 'height'"),
]


@pytest.mark.parametrize(("arguments", "message"), CALLS)
async def test_a_wrong_argument_is_refused_before_anything_is_sent(
    queue: Queue, arguments: dict[str, Any], message: str
) -> None:
    @queue.job
    async def resize(path: str, width: int) -> None: ...

    with pytest.raises(BadInput, match=message):
        await resize.enqueue(**arguments)
    with pytest.raises(BadInput, match=message):
        resize.draft(**arguments)
    with pytest.raises(BadInput, match=message):
        await queue.enqueue("resize", arguments)
    assert await queue.counts() == {}


def test_a_parameter_that_cannot_be_decoded_is_named(queue: Queue) -> None:
    @queue.job
    async def vague(n: int, x: object) -> None: ...

    with pytest.raises(BadInput, match="does not fit vague: object cannot be decoded from JSON"):
        vague.draft(n=1, x=1)
