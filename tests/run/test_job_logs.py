"""Log lines tell of a job: what it logs itself, and how and where it failed."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Generator
from contextvars import ContextVar
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from howdah import Backoff, JobLogFilter, Queue, current_job
from howdah.client.sync import SyncQueue
from tests.cli.support import started

APP = """
import logging
from datetime import timedelta
from howdah import Backoff, Queue

queue = Queue()
log = logging.getLogger("shop")
soon = Backoff(first=timedelta(milliseconds=1))
FORGED = "boom\\n12:00:00 INFO    worker.stopped id=forged \\x1b[2J"

def work(how):
    log.info("from %s", how)
    raise LookupError(FORGED)

@queue.job(max_attempts=2, backoff=soon)
async def in_loop() -> None:
    work("loop")

@queue.job(max_attempts=2, backoff=soon)
def in_thread() -> None:
    work("thread")

@queue.job(max_attempts=2, backoff=soon, run="process")
def in_process() -> None:
    work("process")
"""
TYPES = ("in_loop", "in_thread", "in_process")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


def lines_of(folder: Path, dsn: str, *options: str, last: Callable[[str], bool]) -> list[str]:
    """Let a worker run one job of each type to its end; returns what it has logged."""
    with SyncQueue(dsn) as jobs:
        for name in TYPES:
            jobs.enqueue(name, max_attempts=2)
    lines: list[str] = []
    with started("worker", "app:queue", *options, cwd=folder, HOWDAH_DSN=dsn) as worker:
        assert worker.stderr is not None
        failed = 0
        for line in worker.stderr:
            lines.append(line.rstrip("\n"))
            failed += last(line)
            if failed == len(TYPES):
                worker.terminate()
    return lines


def test_a_line_of_text_has_its_traceback_below_and_its_job_before(folder: Path, dsn: str) -> None:
    lines = lines_of(folder, dsn, last=lambda line: " job.fail " in line)
    assert [line for line in lines if line.startswith("12:00:00")] == []
    assert not any("\x1b" in line for line in lines)
    for name in TYPES:
        for word, attempt in (("WARNING job.retry", 1), ("ERROR   job.fail", 2)):
            (at,) = [
                n
                for n, line in enumerate(lines)
                if word in line
                and re.search(
                    rf"type={name} attempt={attempt}/2 took=\S+s reason=LookupError", line
                )
            ]
            below = lines[at + 1 :]
            assert below[0] == "    Traceback (most recent call last):"
            end = next(n for n, line in enumerate(below) if not line.startswith("    "))
            assert any(f"in {name}" in line for line in below[:end])
            assert "LookupError: boom" in "".join(below[:end])
            assert "x1b[2J" in below[end - 1]
            own = [x for x in lines if f"type={name} attempt={attempt}] from " in x]
            assert len(own) == 1, lines
            assert " INFO    [id=" in own[0]


def test_a_line_of_json_has_its_traceback_and_its_job_as_fields(folder: Path, dsn: str) -> None:
    last = '"message":"job.fail '
    lines = lines_of(folder, dsn, "--log-json", last=lambda line: last in line)
    records: list[dict[str, Any]] = [json.loads(line) for line in lines]
    for name in TYPES:
        of_it = [one for one in records if one.get("job_type") == name]
        assert len({one["job_id"] for one in of_it}) == 1
        own = [one for one in of_it if one["logger"] == "shop"]
        assert [(one["attempt"], one["level"]) for one in own] == [(1, "info"), (2, "info")]
        told = [one for one in of_it if one["logger"] == "howdah.settle"]
        assert [(one["attempt"], one["level"]) for one in told] == [(1, "warning"), (2, "error")]
        for one in told:
            assert one["traceback"].startswith("Traceback (most recent call last):\n")
            assert f"in {name}\n" in one["traceback"]
    (began,) = [one for one in records if one["message"].startswith("worker.started")]
    assert "job_id" not in began


class Kept(logging.Handler):
    """Keeps what is logged, as a handler of the program's own."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.addFilter(JobLogFilter())
        self.setFormatter(logging.Formatter("%(job_id)s %(job_type)s %(attempt)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def kept() -> Generator[Kept]:
    handler, root = Kept(), logging.getLogger()
    root.addHandler(handler)
    yield handler
    root.removeHandler(handler)


async def test_a_programs_own_lines_carry_the_job_they_are_about(queue: Queue, kept: Kept) -> None:
    log = logging.getLogger("shop.orders")

    @queue.job
    async def waiting() -> None:
        await asyncio.gather(deep(), deep())

    async def deep() -> None:
        await asyncio.sleep(0)
        log.warning("deep")

    @queue.job
    def threaded() -> None:
        log.warning("threaded")

    @queue.job(timeout=30)
    def timed() -> None:
        log.warning("timed")

    handles = [await one.enqueue() for one in (waiting, threaded, timed)]
    async with queue.worker() as worker:
        await worker.run_until_idle()
    log.warning("outside")
    said = [line for line in kept.lines if line.split()[-1] in "deep threaded timed outside"]
    first, second, third = (handle.id for handle in handles)
    assert sorted(said) == sorted(
        [
            f"{first} waiting 1 deep",
            f"{first} waiting 1 deep",
            f"{second} threaded 1 threaded",
            f"{third} timed 1 timed",
            "None None None outside",
        ]
    )


async def test_a_formatter_of_the_programs_own_writes_the_traceback(
    queue: Queue, kept: Kept
) -> None:
    @queue.job(max_attempts=1)
    async def broken() -> None:
        raise LookupError("not there")

    handle = await broken.enqueue()
    async with queue.worker() as worker:
        await worker.run_until_idle()
    (told,) = [line for line in kept.lines if "job.fail" in line]
    assert told.startswith(f"{handle.id} broken 1 job.fail id={handle.id} ")
    assert "\nTraceback (most recent call last):\n" in told
    assert told.rstrip().endswith("LookupError: not there")


async def test_code_far_below_a_handler_finds_its_job(queue: Queue) -> None:
    found: list[tuple[str, int]] = []

    def deep() -> None:
        job = current_job()
        assert job is not None
        job.progress(50, "deep")
        found.append((job.job_type, job.attempt))

    @queue.job(backoff=Backoff(first=timedelta()))
    async def outer() -> None:
        deep()

    @queue.job
    def threaded() -> None:
        deep()

    await outer.enqueue()
    await threaded.enqueue()
    async with queue.worker() as worker:
        await worker.run_until_idle()
    assert sorted(found) == [("outer", 1), ("threaded", 1)]
    assert current_job() is None


async def test_what_a_job_sets_in_its_context_is_not_seen_by_the_next(queue: Queue) -> None:
    tenant: ContextVar[str] = ContextVar("tenant", default="nobody")
    seen: list[str] = []

    @queue.job
    async def one(n: int) -> None:
        seen.append(tenant.get())
        tenant.set(f"the tenant of {n}")

    await one.enqueue_many(one.draft(n=n) for n in range(20))
    async with queue.worker(concurrency=1) as worker:
        await worker.run_until_idle()
    assert seen == ["nobody"] * 20
