"""howdah dev: the worker follows the code, the dashboard shows it, and Ctrl-C ends it all."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from howdah import JobFailed
from howdah.cli.dev.watch import Watch
from howdah.client.sync import SyncQueue
from howdah.store.dsn import without_password
from tests.cli.support import Cli, Terminal, environment, run, started, until_true

APP = """
import asyncio
from howdah import Queue

queue = Queue({dsn})

@queue.job
async def greet() -> str:
    print("{greeting} is printed")
    return "{greeting}"

@queue.job(max_attempts=1)
async def fail() -> None:
    raise LookupError("not there")

@queue.job
async def wait_for_ever() -> None:
    await asyncio.sleep(3600)
"""


def write(folder: Path, greeting: str, dsn: str = "") -> None:
    (folder / "app.py").write_text(APP.format(greeting=greeting, dsn=dsn))


class Dev:
    """A running `howdah dev`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def heard(self, pattern: str) -> re.Match[str]:
        """Read what is told on the terminal up to the line with this."""
        assert self.process.stderr is not None
        said: list[str] = []
        for line in self.process.stderr:
            said.append(line)
            if found := re.search(pattern, line):
                return found
        pytest.fail(f"it ended and never said {pattern}:\n{''.join(said)}")


@contextmanager
def dev(folder: Path, *options: object, **more: str) -> Generator[Dev]:
    options = ("--port", 0, *options)
    with started("dev", "app:queue", *options, cwd=folder, **more) as process:  # pyright: ignore[reportArgumentType]
        yield Dev(process)


def the_workers_process(jobs: SyncQueue) -> int:
    """Return the process id of the one worker that is alive."""
    until_true(lambda: sum(one.alive for one in jobs.workers()) == 1, "one worker is alive")
    (worker,) = [one for one in jobs.workers() if one.alive]
    return worker.info["pid"]


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_the_worker_follows_the_code_and_a_mistake_waits_for_the_next_change(
    tmp_path: Path, cli: Cli, jobs: SyncQueue
) -> None:
    write(tmp_path, "hello")
    with dev(tmp_path, HOWDAH_DSN=cli.dsn) as running:
        link = running.heard(r"http://\S+/enter\?token=\S+")[0]
        running.heard("worker.started")
        assert jobs.enqueue("greet").result(timeout=30) == "hello"
        assert running.process.stdout is not None
        assert running.process.stdout.readline() == "hello is printed\n"

        write(tmp_path, "good morning")
        running.heard(r"app\.py changed: the worker starts again")
        running.heard("worker.started")
        assert jobs.enqueue("greet").result(timeout=30) == "good morning"

        (tmp_path / "app.py").write_text("def greet(:")
        running.heard("SyntaxError")
        running.heard("cannot import app: see above")
        running.heard(r"the worker has ended; it starts again when a \.py file changes")
        with httpx.Client(follow_redirects=True) as browser:  # the dashboard is still there
            assert "greet" in browser.get(link).text

        write(tmp_path, "better")
        running.heard("worker.started")
        assert jobs.enqueue("greet").result(timeout=30) == "better"


def test_every_job_that_ends_is_told(tmp_path: Path, cli: Cli, jobs: SyncQueue) -> None:
    write(tmp_path, "hello")
    with dev(tmp_path, HOWDAH_DSN=cli.dsn) as running:
        running.heard("worker.started")
        id = jobs.enqueue("greet").id
        running.heard(
            rf'INFO    job.complete id={id} type=greet attempt=1/3 took=\d\S+s result="hello"$'
        )
        id = jobs.enqueue("fail", max_attempts=1).id
        running.heard(rf"ERROR   job.fail id={id} type=fail attempt=1/1 .* reason=LookupError")
        running.heard("^    Traceback")
        running.heard("^    LookupError: not there")


def test_a_change_hands_back_what_runs_and_the_new_code_runs_it(
    tmp_path: Path, cli: Cli, jobs: SyncQueue
) -> None:
    write(tmp_path, "hello")
    handle = jobs.enqueue("wait_for_ever")
    with dev(tmp_path, HOWDAH_DSN=cli.dsn):
        until_true(lambda: handle.status() == "running", "the job runs")
        text = (tmp_path / "app.py").read_text()
        (tmp_path / "app.py").write_text(text.replace("asyncio.sleep(3600)", "asyncio.sleep(0)"))
        handle.result(timeout=30)
        assert handle.job().attempts == 1  # being handed back is no fault of the job


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_told_to_go_it_ends_the_worker_too(
    tmp_path: Path, cli: Cli, jobs: SyncQueue, number: signal.Signals
) -> None:
    write(tmp_path, "hello")
    with dev(tmp_path, "--dsn", cli.dsn) as running:
        pid = the_workers_process(jobs)
        # a terminal's Ctrl-C is for the parent alone: twice told, a worker would not let jobs end
        assert os.getpgid(pid) != os.getpgid(running.process.pid)
        running.process.send_signal(number)
        assert running.process.wait(15) == 0
        assert is_gone(pid)
        assert running.process.stderr is not None
        assert "Traceback" not in running.process.stderr.read()
    assert [one for one in jobs.workers() if one.alive] == []


def test_in_a_terminal_it_ends_without_noise_and_so_does_every_worker(
    tmp_path: Path, cli: Cli
) -> None:
    write(tmp_path, "hello")
    with Terminal("dev", "app:queue", "--port", 0, cwd=tmp_path, HOWDAH_DSN=cli.dsn) as terminal:
        terminal.read_until("worker.started")
        write(tmp_path, "good morning")
        terminal.read_until("the worker starts again", "worker.started")
        (tmp_path / "app.py").write_text("import not_there")
        terminal.read_until("No module named 'not_there'", "the worker has ended")
        write(tmp_path, "better")
        terminal.read_until("worker.started")
        terminal.type("\x03")
        assert terminal.ended() == 0
    assert "Fatal Python error" not in terminal.shown
    assert "Traceback" not in terminal.shown.rpartition("worker.started")[2]


def child(folder: Path, dsn: str, shown: str) -> subprocess.Popen[str]:
    """Start the worker as `howdah dev` does."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "howdah.cli.dev.child", "app:queue", shown],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment(HOWDAH_DSN=dsn),
    )


def told_to_go(process: subprocess.Popen[str]) -> None:
    process.terminate()


def left_alone(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()


@pytest.mark.parametrize("end", [told_to_go, left_alone])
def test_a_worker_ends_with_the_code_it_means(
    tmp_path: Path, cli: Cli, end: Callable[[subprocess.Popen[str]], None]
) -> None:
    write(tmp_path, "hello")
    with child(tmp_path, cli.dsn, without_password(cli.dsn)) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "worker.started" in line:
                break
        end(process)
        said = process.stderr.read()
        assert process.wait(30) == 0, said
    assert "Fatal" not in said


def test_a_worker_whose_module_cannot_be_imported_says_so_by_its_code(
    tmp_path: Path, cli: Cli
) -> None:
    (tmp_path / "app.py").write_text("import not_there")
    with child(tmp_path, cli.dsn, "whatever") as process:
        assert process.stderr is not None
        said = process.stderr.read()
        assert process.wait(30) == 2, said
    assert "No module named 'not_there'" in said
    assert "Fatal" not in said


def test_a_handler_that_reads_from_the_terminal_finds_nothing(
    tmp_path: Path, cli: Cli, jobs: SyncQueue
) -> None:
    (tmp_path / "app.py").write_text(
        "from howdah import Queue\nqueue = Queue()\n"
        "@queue.job(max_attempts=1)\ndef ask() -> str:\n    return input()\n"
    )
    handle = jobs.enqueue("ask", max_attempts=1)
    with dev(tmp_path, HOWDAH_DSN=cli.dsn), pytest.raises(JobFailed, match="EOFError"):
        handle.result(timeout=30)


def test_killed_it_leaves_no_worker_behind(tmp_path: Path, cli: Cli, jobs: SyncQueue) -> None:
    write(tmp_path, "hello")
    with dev(tmp_path, HOWDAH_DSN=cli.dsn) as running:
        pid = the_workers_process(jobs)
        running.process.kill()
        until_true(lambda: is_gone(pid), "the worker is gone")


def test_on_the_embedded_database_it_needs_nothing_else(tmp_path: Path) -> None:
    write(tmp_path, "hello")
    home = str(tmp_path / "home")
    with dev(tmp_path, HOWDAH_HOME=home) as running:
        running.heard("worker.started")
        done = run("enqueue", "greet", "--wait", cwd=tmp_path, HOWDAH_HOME=home)
        assert (done.returncode, "hello" in done.stdout) == (0, True), done.stderr
        running.process.terminate()
        assert running.process.wait(15) == 0


def test_without_the_schema_it_says_how_to_install_it(tmp_path: Path, empty_dsn: str) -> None:
    write(tmp_path, "hello")
    done = run("dev", "app:queue", "--port", 0, "--dsn", empty_dsn, cwd=tmp_path)
    assert done.returncode == 5
    assert "howdah install" in done.stderr
    assert "worker.started" not in done.stderr


def test_a_queue_on_another_database_than_the_dashboard_is_told(
    tmp_path: Path, cli: Cli, empty_dsn: str
) -> None:
    write(tmp_path, "hello", repr(empty_dsn))
    with dev(tmp_path, HOWDAH_DSN=cli.dsn) as running:
        running.heard("app:queue works on .* but the dashboard shows")


def test_a_watch_sees_python_files_come_go_and_change(tmp_path: Path) -> None:
    def put(name: str, text: str = "") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    app, deep = put("app.py"), put("shop/orders/late.py")
    watch = Watch(tmp_path)
    assert watch.step() == []
    put("app.py", "x = 1")
    new = put("shop/new.py")
    assert watch.step() == [app, new]
    deep.unlink()
    assert watch.step() == [deep]
    put("env/pyvenv.cfg")
    for name in ("notes.txt", "env/lib/a.py", ".git/b.py", "__pycache__/c.py", "node_modules/d.py"):
        put(name, "changed")
    assert watch.step() == []
