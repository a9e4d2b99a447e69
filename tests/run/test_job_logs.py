"""Log records of a job name it: its own log lines, and how and where it failed."""

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
    """Let a worker run one job of each type to its end; returns the log lines."""
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


def test_a_text_line_names_its_job_and_has_its_traceback_after_it(folder: Path, dsn: str) -> None:
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
            after = lines[at + 1 :]
            assert after[0] == "    Traceback (most recent call last):"
            end = next(n for n, line in enumerate(after) if not line.startswith("    "))
            assert any(f"in {name}" in line for line in after[:end])
            assert "LookupError: boom" in "".join(after[:end])
            assert "x1b[2J" in after[end - 1]
            own = [x for x in lines if f"type={name} attempt={attempt}] from " in x]
            assert len(own) == 1, lines
            assert " INFO    [id=" in own[0]


def test_a_json_line_has_its_job_and_its_traceback_as_fields(folder: Path, dsn: str) -> None:
    last = '"message":"job.fail '
    lines = lines_of(folder, dsn, "--log-json", last=lambda line: last in line)
    records: list[dict[str, Any]] = [json.loads(line) for line in lines]
    for name in TYPES:
        job_records = [record for record in records if record.get("job_type") == name]
        assert len({record["job_id"] for record in job_records}) == 1
        own = [record for record in job_records if record["logger"] == "shop"]
        assert [(record["attempt"], record["level"]) for record in own] == [
            (1, "info"),
            (2, "info"),
        ]
        settled = [record for record in job_records if record["logger"] == "howdah.settle"]
        assert [(record["attempt"], record["level"]) for record in settled] == [
            (1, "warning"),
            (2, "error"),
        ]
        for record in settled:
            assert record["traceback"].startswith("Traceback (most recent call last):\n")
            assert f"in {name}\n" in record["traceback"]
    (began,) = [record for record in records if record["message"].startswith("worker.started")]
    assert "job_id" not in began


class LogLines(logging.Handler):
    """A log handler of the program that keeps the formatted lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.addFilter(JobLogFilter())
        self.setFormatter(logging.Formatter("%(job_id)s %(job_type)s %(attempt)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def log_lines() -> Generator[LogLines]:
    handler, root = LogLines(), logging.getLogger()
    root.addHandler(handler)
    yield handler
    root.removeHandler(handler)


async def test_log_lines_of_the_program_name_their_job(queue: Queue, log_lines: LogLines) -> None:
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

    handles = [await job.enqueue() for job in (waiting, threaded, timed)]
    async with queue.worker() as worker:
        await worker.run_until_idle()
    log.warning("outside")
    lines = [line for line in log_lines.lines if line.split()[-1] in "deep threaded timed outside"]
    first, second, third = (handle.id for handle in handles)
    assert sorted(lines) == sorted(
        [
            f"{first} waiting 1 deep",
            f"{first} waiting 1 deep",
            f"{second} threaded 1 threaded",
            f"{third} timed 1 timed",
            "None None None outside",
        ]
    )


async def test_a_formatter_of_the_program_writes_the_traceback(
    queue: Queue, log_lines: LogLines
) -> None:
    @queue.job(max_attempts=1)
    async def broken() -> None:
        raise LookupError("not there")

    handle = await broken.enqueue()
    async with queue.worker() as worker:
        await worker.run_until_idle()
    (line,) = [line for line in log_lines.lines if "job.fail" in line]
    assert line.startswith(f"{handle.id} broken 1 job.fail id={handle.id} ")
    assert "\nTraceback (most recent call last):\n" in line
    assert line.rstrip().endswith("LookupError: not there")


async def test_code_called_by_a_handler_finds_its_job(queue: Queue) -> None:
    jobs_seen: list[tuple[str, int]] = []

    def deep() -> None:
        job = current_job()
        assert job is not None
        job.progress(50, "deep")
        jobs_seen.append((job.job_type, job.attempt))

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
    assert sorted(jobs_seen) == [("outer", 1), ("threaded", 1)]
    assert current_job() is None


async def test_context_variables_of_a_job_are_not_seen_by_the_next(queue: Queue) -> None:
    tenant: ContextVar[str] = ContextVar("tenant", default="none")
    seen: list[str] = []

    @queue.job
    async def set_tenant(n: int) -> None:
        seen.append(tenant.get())
        tenant.set(f"the tenant of {n}")

    await set_tenant.enqueue_many(set_tenant.draft(n=n) for n in range(20))
    async with queue.worker(concurrency=1) as worker:
        await worker.run_until_idle()
    assert seen == ["none"] * 20
