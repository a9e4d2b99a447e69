"""Any bytes that a child writes to its pipe cost at most its own attempt; the worker continues.

The messages are generated: every kind, each field with valid and invalid values, whole and cut
short, repeated, in any order, before, between and after the child's own messages. The children, the
worker and the database are real.
"""

from __future__ import annotations

import asyncio
import base64
import json
import struct
import zlib
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from howdah import Queue, State
from howdah.run.process import supervisor
from tests.fuzz.budget import examples
from tests.fuzz.test_payload import World, numbers, texts, values, world
from tests.security.app import queue_at
from tests.support.waiting import eventually

__all__ = ["world"]  # the fixture

SLOTS = 6

long_texts = st.sampled_from(
    ["", "x" * 201, "x" * 1_001, "x" * 2_001, "x" * 16_002, "\0", "\ud800"]
)
any_text = texts | long_texts
documents = st.sampled_from(
    [
        *("", "{", "nonsense", "NaN", "1e400", "1e400000", "-1e400000", "1e-400000", "9" * 5_000),
        *('"\\ud800"', '"\\u0000"', '"\0"', "[" * 40_000, "[" * 500 + "]" * 500, '{"a":1,"a":2}'),
        *(
            '{"\\u0000": 1}',
            json.dumps("x" * 70_000),
            json.dumps("x" * 300_000),
            "null",
            "{}",
            " 1 ",
        ),
    ]
) | values.map(lambda value: json.dumps(value, default=str)[:10_000])
anything = any_text | numbers | st.booleans() | st.none() | st.lists(st.integers(), max_size=2)
FIELDS: dict[str, dict[str, Any]] = {
    "ready": {},
    "started": {},
    "progress": {
        "percent": numbers | st.none() | anything,
        "stage": any_text | st.none() | anything,
    },
    "emit": {"kind": any_text | anything, "data": documents | anything},
    "returned": {"result": documents | anything},
    "decided": {
        "outcome": st.sampled_from(
            ["Retry", "Snooze", "Cancel", "Fail", "Complete", "__class__", ""]
        ),
        "reason": any_text | anything,
        "after": numbers | st.none() | anything,
    },
    "raised": {
        "line": any_text | anything,
        "traceback": any_text | st.none() | anything,
        "retry": st.booleans() | anything,
    },
    "begin": {"path": st.just([]), "main": st.none()},
    "unheard of": {},
}


def framed(body: bytes) -> bytes:
    return struct.pack("!I", len(body)) + body


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    kind = draw(st.sampled_from(list(FIELDS)))
    fields = {name: draw(field) for name, field in FIELDS[kind].items()}
    if draw(st.integers(0, 9)) == 0:
        fields[draw(any_text)] = draw(anything)
    if fields and draw(st.integers(0, 9)) == 0:
        del fields[draw(st.sampled_from(sorted(fields)))]
    text = json.dumps({"type": kind, **fields}, ensure_ascii=draw(st.booleans()))
    return text.encode("utf-8", "surrogatepass")


@st.composite
def pieces(draw: st.DrawFn) -> bytes:
    whole = framed(draw(bodies()))
    match draw(st.sampled_from(["whole"] * 6 + ["twice", "cut", "grown", "noise", "endless"])):
        case "twice":
            return whole * 2
        case "cut":
            return whole[: draw(st.integers(0, len(whole)))]
        case "grown":
            return struct.pack("!I", len(whole) + draw(st.integers(-20, 20_000))) + whole[4:]
        case "noise":
            return draw(st.binary(max_size=30))
        case "endless":
            return b"\xff" * 4 + whole
        case _:
            return whole


streams = st.tuples(
    st.lists(pieces(), max_size=4), st.sampled_from(["return", "return", "wait", "die"])
)


def message(tag: str, /, **fields: object) -> bytes:
    return framed(json.dumps({"type": tag, **fields}).encode())


@given(st.lists(streams, min_size=1, max_size=5))
@example(
    [
        ([message("emit", kind="x", data="{")], "return"),
        ([message("emit", kind="x", data="1e400000")], "wait"),
        ([message("emit", kind="x", data="[" * 20_000 + "]" * 20_000)], "return"),
        (
            [message("emit", kind="\0", data="1"), message("progress", percent=1, stage="\0")],
            "return",
        ),
    ]
)
@example(
    [
        ([message("returned", result="1e-400000")], "return"),
        ([message("returned", result="nonsense")], "wait"),
        ([message("returned", result="1")], "wait"),
        ([message("returned", result=None)] * 3, "return"),
        ([message("started")], "wait"),
        ([message("ready"), message("progress", percent=5, stage=None)], "return"),
    ]
)
@example(
    [
        ([message("decided", outcome="Nonsense", reason="", after=None)], "wait"),
        ([message("decided", outcome="Retry", reason="\0", after=1e300)], "wait"),
        ([message("raised", line="x" * 10_000, traceback=None, retry=True)], "wait"),
        ([b"\0\0\0\x50"], "return"),
        ([b"\0"], "return"),
    ]
)
@examples(8)
def test_a_worker_survives_any_message_of_a_child(
    world: World, streams_sent: list[tuple[list[bytes], str]]
) -> None:
    async def work() -> None:
        async with queue_at(world.queue.store.shown_dsn) as queue:
            await send_and_check(queue, streams_sent)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(supervisor, "UNFINISHED", 0.3, raising=False)
        world.run(work())


def packed(parts: list[bytes]) -> str:
    """Pack bytes into a payload, which has a size limit."""
    return " ".join(base64.b64encode(zlib.compress(part)).decode() for part in parts)


async def send_and_check(queue: Queue, streams_sent: list[tuple[list[bytes], str]]) -> None:
    hostile = [
        await queue.enqueue("write_to_pipe_and_end", {"message": packed(parts), "then": then})
        for parts, then in streams_sent
    ]
    async with asyncio.timeout(60), queue.worker(concurrency=SLOTS, processes=2) as worker:
        await eventually(lambda: ended(hostile))
        for n in range(4):
            assert await (await queue.enqueue("echo", {"n": n})).result(timeout=20) == n
        await eventually(lambda: worker.free_slots == SLOTS)
        assert not worker._stopping.is_set()  # pyright: ignore[reportPrivateUsage]
    for handle in hostile:
        job = await handle.job()
        assert job.status is not State.FAILED or job.last_error
        await handle.cancel()  # it may have snoozed or wait for a retry


async def ended(handles: list[Any]) -> bool:
    """Whether each has ended, snoozed or waits for a retry."""
    jobs = [await handle.job() for handle in handles]
    return all(job.status.finished or job.run_at is not None for job in jobs)
