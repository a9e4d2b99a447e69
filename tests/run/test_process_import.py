"""A handler that no child process can import is refused at the start, with what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from howdah import BadInput, Queue
from tests.run import process_jobs

JOBS = """
import asyncio, os, sys
from howdah import Queue, SyncQueue

print("began", flush=True)
queue = Queue(os.environ["HOWDAH_DSN"])

@queue.job(run="process", max_attempts=1)
def crunch(n: int) -> int:
    return n * 2

async def main() -> None:
    async with queue, queue.worker(processes=1):
        handle = await crunch.enqueue(n=21)
        print("result", await handle.result(timeout=60))

def main_sync() -> None:
    with SyncQueue.of(queue) as sync, sync.worker(processes=1):
        print("result", sync.job_type(crunch).enqueue(n=21).result(timeout=60))
"""
BARE = "asyncio.run(main())\n"
BARE_SYNC = "main_sync()\n"
GUARDED = 'if __name__ == "__main__":\n    asyncio.run(main())\n'
GUARDED_SYNC = 'if __name__ == "__main__" and True:\n    main_sync()\n'
GUARD = 'put it under if __name__ == "__main__":'


def run(dsn: str, folder: Path, program: str, *how: str) -> subprocess.CompletedProcess[str]:
    for name in ("prog.py", "prog"):
        (folder / name).write_text(program)
    return subprocess.run(
        [sys.executable, *how],
        cwd=folder,
        env={**os.environ, "HOWDAH_DSN": dsn},
        input=program,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.parametrize(
    ("end", "name"),
    [(GUARDED, "prog.py"), (GUARDED_SYNC, "prog.py"), (GUARDED, "prog")],
    ids=["async", "sync", "any name"],
)
def test_a_program_with_a_guard_works(
    queue: Queue, dsn: str, tmp_path: Path, end: str, name: str
) -> None:
    done = run(dsn, tmp_path, JOBS + end, name)
    assert "result 42" in done.stdout, done.stderr


def test_a_program_that_is_run_as_a_module_works(queue: Queue, dsn: str, tmp_path: Path) -> None:
    done = run(dsn, tmp_path, JOBS + GUARDED, "-m", "prog")
    assert "result 42" in done.stdout, done.stderr


@pytest.mark.parametrize("end", [BARE, BARE_SYNC], ids=["async", "sync"])
def test_a_program_without_a_guard_is_refused_before_it_runs_twice(
    queue: Queue, dsn: str, tmp_path: Path, end: str
) -> None:
    done = run(dsn, tmp_path, JOBS + end, "prog.py")
    assert done.returncode == 1
    assert done.stdout.split() == ["began"]
    line = len((JOBS + end).splitlines())
    assert f"imports. line {line} would run there again: {GUARD}" in done.stderr


@pytest.mark.parametrize("how", [["prog.py"], ["-m", "prog"]], ids=["file", "module"])
def test_a_function_under_the_guard_is_refused(
    queue: Queue, dsn: str, tmp_path: Path, how: list[str]
) -> None:
    above, job, below = JOBS.partition("@queue.job")
    program = f"{above}if __name__ == '__main__':\n" + indent(job + below + BARE, "    ")
    done = run(dsn, tmp_path, program, *how)
    assert done.returncode == 1
    assert "under if __name__ ==" in done.stderr
    assert "define the function above it" in done.stderr


def test_a_program_without_a_file_is_refused(queue: Queue, dsn: str, tmp_path: Path) -> None:
    done = run(dsn, tmp_path, JOBS + BARE, "-")
    assert done.returncode == 1
    assert "defined in a program that has no file" in done.stderr


def not_decorated(n: int) -> int:
    return n


async def test_a_function_that_is_not_registered_in_its_module_is_refused(queue: Queue) -> None:
    queue.job(run="process")(not_decorated)
    with pytest.raises(BadInput, match=r"would find no registered job .* uppermost decorator"):
        await queue.worker().start()


async def test_a_function_that_is_not_in_its_module_is_refused(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    function: Any = process_jobs.whoami.function
    queue.job(run="process")(function)
    monkeypatch.delattr(process_jobs, "whoami")
    with pytest.raises(BadInput, match="would find nothing under that name"):
        await queue.worker().start()
