"""A child process imports howdah and its dependencies from where the worker did.

The working directory may hold files of any name. None of them may run in place of howdah's own
modules or Python's.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from howdah import Queue
from tests.cli.support import environment

# Every module of the standard library, and the dependencies of howdah.
NAMES = sorted(
    {name for name in sys.stdlib_module_names if name != "__main__" and find_spec(name)}
    | {"howdah", "msgspec", "asyncpg", "click", "rich", "uvloop", "sitecustomize"}
)
SERVICE = """
from howdah import JobContext, Queue

queue = Queue()


@queue.job(run="process")
def work(ctx: JobContext, n: int) -> int:
    ctx.progress(50, "half")
    ctx.emit("seen", {"n": n})
    import beside
    return beside.double(n)


@queue.job(run="process", max_attempts=1)
def fails() -> None:
    try:
        raise LookupError("first")
    except LookupError as error:
        raise ValueError("as it should") from error


@queue.job(run="process", max_attempts=1)
async def awaits() -> str:
    return "awaited"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which every module would leave a mark if it were imported."""
    folder_path = tmp_path / "service folder"
    folder_path.mkdir()
    for name in NAMES:
        mark = tmp_path / f"{name}.mark"
        (folder_path / f"{name}.py").write_text(
            f"open({str(mark)!r}, 'w').close()\nraise SystemExit(77)\n"
        )
    (folder_path / "service.py").write_text(SERVICE)
    (folder_path / "beside.py").write_text("def double(n):\n    return 2 * n\n")
    return folder_path


def marks(folder: Path) -> set[str]:
    return {path.stem for path in folder.parent.glob("*.mark")}


async def outcomes(queue: Queue) -> list[Any]:
    done = [await queue.enqueue("work", {"n": n}) for n in range(3)]
    failed, awaited = await queue.enqueue("fails"), await queue.enqueue("awaits")
    results: list[Any] = [await handle.result(timeout=60) for handle in [*done, awaited]]
    with pytest.raises(Exception, match="ValueError: as it should"):
        await failed.result(timeout=60)
    return results


def test_an_imported_module_leaves_a_mark(folder: Path) -> None:
    """With `python -m` the folder comes first, so the test below can fail."""
    done = subprocess.run([sys.executable, "-m", "msgspec"], cwd=folder, timeout=60)
    assert done.returncode == 77
    assert marks(folder)


HOWDAH = str(Path(sys.executable).with_name("howdah"))
PROGRAM = """
import asyncio, sys
sys.path.append(sys.argv[1])
from service import queue
asyncio.run(queue.worker(processes=1).run())
"""


@pytest.mark.parametrize("start", ["howdah worker", "a program"])
async def test_no_module_of_the_working_directory_runs_in_a_child(
    queue: Queue, dsn: str, folder: Path, tmp_path: Path, start: str
) -> None:
    command = [HOWDAH, "worker", "service:queue", "--processes", "1"]
    if start == "a program":
        (tmp_path / "program.py").write_text(PROGRAM)
        command = [sys.executable, str(tmp_path / "program.py"), str(folder)]
    process = subprocess.Popen(command, cwd=folder, env=environment(HOWDAH_DSN=dsn))
    try:
        assert await outcomes(queue) == [0, 2, 4, "awaited"]
    finally:
        process.terminate()
        process.wait(30)
    assert marks(folder) == set()
