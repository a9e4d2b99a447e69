"""howdah watch: a job is followed to its end, in three ways."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from howdah import Handle, JobContext, Queue
from howdah.cli.watch import ProgressRate
from howdah.events import Progressed
from howdah.states import State
from tests.cli.support import on_a_terminal, started


@pytest.fixture
async def gates(queue: Queue) -> AsyncGenerator[list[asyncio.Event]]:
    """A worker on a job that waits at each of two gates, and then completes or fails."""
    gates = [asyncio.Event(), asyncio.Event()]

    @queue.job(max_attempts=1)
    async def render(ctx: JobContext, fails: bool) -> dict[str, int]:
        await ctx.emit("frame", {"n": 1})
        await ctx.progress(25, "drawing")
        await gates[0].wait()
        await ctx.emit("frame", {"n": 2})
        await ctx.progress(75, "encoding")
        await gates[1].wait()
        if fails:
            raise ValueError("no more paper")
        return {"frames": 2}

    async with queue.worker():
        yield gates


async def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return await asyncio.to_thread(process.stdout.readline)


async def rest(process: subprocess.Popen[str]) -> tuple[list[str], str]:
    stdout, stderr = await asyncio.to_thread(process.communicate, timeout=30)
    return stdout.splitlines(), stderr


async def render(queue: Queue, *, fails: bool = False) -> Handle[Any]:
    return await queue.enqueue("render", {"fails": fails})


async def test_json_is_one_line_per_event_while_it_happens(
    queue: Queue, dsn: str, gates: list[asyncio.Event]
) -> None:
    handle = await render(queue)
    with started("watch", handle.id, "--json", "--dsn", dsn) as watching:
        events: list[dict[str, Any]] = []
        for gate, stage in zip(gates, ("drawing", "encoding"), strict=True):
            while not events or events[-1].get("stage") != stage:
                events.append(json.loads(await line(watching)))
            gate.set()
        lines, _ = await rest(watching)
    events += map(json.loads, lines)
    assert watching.returncode == 0
    emitted = [(e["number"], e["kind"], e["data"]) for e in events if e["event"] == "emitted"]
    assert emitted == [(1, "frame", {"n": 1}), (2, "frame", {"n": 2})]
    assert [e["percent"] for e in events if e["event"] == "progressed"][-1] == 100
    assert events[-1] == {
        "event": "ended",
        "status": "completed",
        "result": {"frames": 2},
        "error": None,
    }


async def test_plain_lines_where_there_is_no_terminal(
    queue: Queue, dsn: str, gates: list[asyncio.Event]
) -> None:
    handle = await render(queue, fails=True)
    with started("watch", handle.id, "--dsn", dsn) as watching:
        while "25%  drawing" not in await line(watching):
            pass
        for gate in gates:
            gate.set()
        lines, _ = await rest(watching)
    assert watching.returncode == 1
    assert any(line.endswith('   2 frame  {"n":2}') for line in lines)
    assert lines[-1] == "failed: ValueError: no more paper"
    assert not any("\x1b" in line for line in lines)


async def test_a_bar_on_a_terminal(queue: Queue, dsn: str, gates: list[asyncio.Event]) -> None:
    for gate in gates:
        gate.set()
    handle = await render(queue)
    output = await asyncio.to_thread(on_a_terminal, "watch", handle.id, "--dsn", dsn)
    assert "━" in output
    assert "100%" in output
    assert "encoding" in output
    assert '{"frames":2}' in output


async def test_after_skips_earlier_events(
    queue: Queue, dsn: str, gates: list[asyncio.Event]
) -> None:
    for gate in gates:
        gate.set()
    handle = await render(queue)
    await handle.result(timeout=20)
    with started("watch", handle.id, "--after", 1, "--json", "--dsn", dsn) as watching:
        lines, _ = await rest(watching)
    assert [e["number"] for e in map(json.loads, lines) if e["event"] == "emitted"] == [2]


async def test_a_cancelled_job_ends_the_watching_with_1(
    queue: Queue, dsn: str, gates: list[asyncio.Event]
) -> None:
    handle = await render(queue)
    with started("watch", handle.id, "--json", "--dsn", dsn) as watching:
        while '"drawing"' not in await line(watching):
            pass
        await handle.cancel("not needed")
        lines, _ = await rest(watching)
    assert watching.returncode == 1
    ended = json.loads(lines[-1])
    assert (ended["status"], ended["error"]) == ("cancelled", "not needed")


def test_the_rate_is_that_of_one_attempt() -> None:
    def at(percent: int, attempt: int = 1) -> Progressed:
        return Progressed(State.RUNNING, percent, None, attempt)

    rate = ProgressRate()
    rate.add(at(10), 100.0)
    assert str(rate) == ""
    rate.add(at(30), 110.0)
    assert str(rate) == "2.0% per second, 35.0 s left"
    rate.add(at(0, attempt=2), 120.0)
    assert str(rate) == ""
    rate.add(at(1, attempt=2), 220.0)
    assert str(rate) == "36.0% per hour, 2h 45m left"
