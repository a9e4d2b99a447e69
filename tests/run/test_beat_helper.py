"""While a handler holds the GIL, the helper process beats, and the log names the handler."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from howdah import Queue, State
from howdah.observe import examine
from howdah.run import beat_helper, beat_process
from tests.support.waiting import eventually, wait_until

APP = """
import ctypes, pathlib
from howdah import JobContext, Queue

queue = Queue()

@queue.job
def hog(ctx: JobContext, folder: str, seconds: int) -> int:
    pathlib.Path(folder, f"attempt-{ctx.attempt}").touch()
    ctypes.PyDLL(None).sleep(seconds)  # holds the GIL, unlike time.sleep
    return ctx.attempt
"""


@contextmanager
def worker(dsn: str, folder: Path, *options: str) -> Generator[subprocess.Popen[str]]:
    (folder / "app.py").write_text(APP)
    process = subprocess.Popen(
        [sys.executable, "-m", "howdah", "worker", "app:queue", *options],
        cwd=folder,
        env={**os.environ, "HOWDAH_DSN": dsn},
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
async def test_a_handler_that_holds_the_gil_is_not_run_twice_and_is_named(
    dsn: str, queue: Queue, tmp_path: Path
) -> None:
    @queue.job
    def other() -> None: ...

    handle = await queue.enqueue("hog", {"folder": str(tmp_path), "seconds": 14})
    with worker(dsn, tmp_path, "--silent-after", "4s") as process:
        await eventually((tmp_path / "attempt-1").exists, "the handler runs")
        # the upkeep of this worker recovers jobs of silent workers
        async with queue.worker(upkeep_every=timedelta(milliseconds=100)):
            text = await held_up_sentence(queue)
            assert text.startswith("hog"), "the doctor names it while it holds the GIL"
            assert await handle.result(timeout=40) == 1
        await eventually(lambda: names(queue, "hog"), "the doctor still names it afterwards")
        process.terminate()
        _, stderr = process.communicate(timeout=40)
    job = await handle.job()
    assert (job.status, job.attempts, job.errors) == (State.COMPLETED, 1, [])
    assert not (tmp_path / "attempt-2").exists()
    (line,) = [line for line in stderr.splitlines() if "beat.held_up" in line]
    assert "types=hog helper=beat:" in line


async def test_a_stopped_worker_is_given_up_although_it_has_a_helper(
    dsn: str, queue: Queue, tmp_path: Path
) -> None:
    handle = await queue.enqueue("hog", {"folder": str(tmp_path), "seconds": 3600})
    with worker(dsn, tmp_path, "--silent-after", "1s") as process:
        await eventually((tmp_path / "attempt-1").exists, "the handler runs")
        process.send_signal(signal.SIGSTOP)
        await recovered(queue, handle.id)


async def test_the_helper_beats_no_longer_than_stale_after(
    dsn: str, queue: Queue, tmp_path: Path
) -> None:
    handle = await queue.enqueue("hog", {"folder": str(tmp_path), "seconds": 3600})
    with worker(dsn, tmp_path, "--silent-after", "1s", "--stale-after", "2s"):
        await eventually((tmp_path / "attempt-1").exists, "the handler runs")
        await recovered(queue, handle.id)


async def test_the_helper_ends_with_its_worker(dsn: str, tmp_path: Path) -> None:
    with worker(dsn, tmp_path) as process:
        assert process.stderr is not None
        assert "worker.started" in process.stderr.readline()
        helpers = children(process.pid)
        assert len(helpers) == 1
        # a service manager may signal the whole control group
        for number in (signal.SIGTERM, signal.SIGINT):
            os.kill(helpers[0], number)
        process.kill()
        process.wait()
        await eventually(
            lambda: not beat_helper.is_running_process(helpers[0]), "the helper has ended"
        )


async def test_a_worker_without_a_helper_beats_alone_and_logs_it(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    @queue.job
    async def fine() -> str:
        return "ran"

    monkeypatch.setattr(beat_process.sys, "executable", "/nowhere/python")
    handle = await fine.enqueue()
    with caplog.at_level(logging.WARNING, logger="howdah.beat"):
        async with queue.worker():
            assert await handle.result(timeout=20) == "ran"
    assert caplog.text.count("beat.alone") == 1


async def test_a_helper_that_dies_is_logged_once(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    @queue.job
    async def fine() -> None: ...

    before = set(children(os.getpid()))
    async with queue.worker(silent_after=timedelta(milliseconds=500)):
        (helper,) = set(children(os.getpid())) - before
        os.kill(helper, signal.SIGKILL)
        await eventually(lambda: "beat.alone" in caplog.text)
    assert caplog.text.count("beat.alone") == 1


def test_a_stopped_process_is_not_running() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert beat_helper.is_running_process(process.pid)
        process.send_signal(signal.SIGSTOP)
        wait_until(
            lambda: not beat_helper.is_running_process(process.pid), "the process is stopped"
        )
        process.kill()
        process.wait()
        assert not beat_helper.is_running_process(process.pid)


def children(pid: int) -> list[int]:
    """Return the process ids of the helpers of a process."""
    command = ("ps", "-A", "-ww", "-o", "pid=,ppid=,args=")
    output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    rows = [line.split(None, 2) for line in output.splitlines()]
    return [int(r[0]) for r in rows if int(r[1]) == pid and "beat_helper" in r[2]]


async def held_up_sentence(queue: Queue) -> str:
    """Wait until the doctor reports held up workers; returns its sentence."""
    await eventually(lambda: names(queue, ""), "the doctor reports it")
    return await sentence(queue)


async def names(queue: Queue, job_type: str) -> bool:
    text = await sentence(queue)
    return text != "" and job_type in text


async def sentence(queue: Queue) -> str:
    checks = (await examine(queue.store)).checks
    (check,) = [check for check in checks if check.name == "held_up"]
    return check.sentence if check.value else ""


async def recovered(queue: Queue, id: object) -> None:
    @queue.job
    def other() -> None: ...

    async def is_back() -> bool:
        job = await queue.get(str(id))
        return any("went silent" in error["error"] for error in job.errors)

    async with queue.worker(upkeep_every=timedelta(milliseconds=100)):
        await eventually(is_back, "its job is recovered")
