"""howdah dev: the worker restarts when the code changes, and Ctrl-C stops everything."""

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
from howdah.cli.dev.file_watcher import FileWatcher
from howdah.client.sync import SyncQueue
from howdah.store.dsn import without_password
from tests.cli.support import Cli, Terminal, environment, run, started
from tests.support.waiting import wait_until

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

    def read_until(self, pattern: str) -> re.Match[str]:
        """Read the output up to a line that matches."""
        assert self.process.stderr is not None
        lines: list[str] = []
        for line in self.process.stderr:
            lines.append(line)
            if match := re.search(pattern, line):
                return match
        pytest.fail(f"it ended and never printed {pattern}:\n{''.join(lines)}")


@contextmanager
def dev(folder: Path, *options: object, **more: str) -> Generator[Dev]:
    options = ("--port", 0, *options)
    with started("dev", "app:queue", *options, cwd=folder, **more) as process:  # pyright: ignore[reportArgumentType]
        yield Dev(process)


def pid_of_worker(jobs: SyncQueue) -> int:
    """Return the process id of the one worker that is alive."""
    wait_until(lambda: sum(worker.alive for worker in jobs.workers()) == 1, "one worker is alive")
    (worker,) = [worker for worker in jobs.workers() if worker.alive]
    return worker.info["pid"]


def has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_the_worker_restarts_on_a_change_and_waits_after_an_error(
    tmp_path: Path, cli: Cli, jobs: SyncQueue
) -> None:
    write(tmp_path, "hello")
    with dev(tmp_path, HOWDAH_DSN=cli.dsn) as running:
        link = running.read_until(r"http://\S+/link\?token=\S+")[0]
        running.read_until("worker.started")
        assert jobs.enqueue("greet").result(timeout=30) == "hello"
        assert running.process.stdout is not None
        assert running.process.stdout.readline() == "hello is printed\n"

        write(tmp_path, "good morning")
        running.read_until(r"app\.py changed: the worker restarts")
        running.read_until("worker.started")
        assert jobs.enqueue("greet").result(timeout=30) == "good morning"

        (tmp_path / "app.py").write_text("def greet(:")
        running.read_until("SyntaxError")
        running.read_until("cannot import app: correct the error above")
        running.read_until(r"the worker has ended; it restarts when a \.py file changes")
        with httpx.Client(follow_redirects=True) as browser:  # the dashboard is still there
            assert "greet" in browser.get(link).text

        write(tmp_path, "better")
        running.read_until("worker.started")
        assert jobs.enqueue("greet").result(timeout=30) == "better"


def test_every_job_that_ends_is_printed(tmp_path: Path, cli: Cli, jobs: SyncQueue) -> None:
    write(tmp_path, "hello")
    with dev(tmp_path, HOWDAH_DSN=cli.dsn) as running:
        running.read_until("worker.started")
        id = jobs.enqueue("greet").id
        running.read_until(
            rf'INFO    job.complete id={id} type=greet attempt=1/3 took=\d\S+s result="hello"$'
        )
        id = jobs.enqueue("fail", max_attempts=1).id
        running.read_until(rf"ERROR   job.fail id={id} type=fail attempt=1/1 .* reason=LookupError")
        running.read_until("^    Traceback")
        running.read_until("^    LookupError: not there")


def test_a_change_releases_the_running_job_and_the_new_code_runs_it(
    tmp_path: Path, cli: Cli, jobs: SyncQueue
) -> None:
    write(tmp_path, "hello")
    handle = jobs.enqueue("wait_for_ever")
    with dev(tmp_path, HOWDAH_DSN=cli.dsn):
        wait_until(lambda: handle.status() == "running", "the job runs")
        text = (tmp_path / "app.py").read_text()
        (tmp_path / "app.py").write_text(text.replace("asyncio.sleep(3600)", "asyncio.sleep(0)"))
        handle.result(timeout=30)
        assert handle.job().attempts == 1  # an attempt that was released does not count


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_worker_too(
    tmp_path: Path, cli: Cli, jobs: SyncQueue, number: signal.Signals
) -> None:
    write(tmp_path, "hello")
    with dev(tmp_path, "--dsn", cli.dsn) as running:
        pid = pid_of_worker(jobs)
        # Ctrl-C reaches only the parent: on a second signal a worker would not let jobs end
        assert os.getpgid(pid) != os.getpgid(running.process.pid)
        running.process.send_signal(number)
        assert running.process.wait(15) == 0
        assert has_ended(pid)
        assert running.process.stderr is not None
        assert "Traceback" not in running.process.stderr.read()
    assert [worker for worker in jobs.workers() if worker.alive] == []


def test_on_a_terminal_ctrl_c_ends_it_without_a_traceback(tmp_path: Path, cli: Cli) -> None:
    write(tmp_path, "hello")
    with Terminal("dev", "app:queue", "--port", 0, cwd=tmp_path, HOWDAH_DSN=cli.dsn) as terminal:
        terminal.read_until("worker.started")
        write(tmp_path, "good morning")
        terminal.read_until("the worker restarts", "worker.started")
        (tmp_path / "app.py").write_text("import not_there")
        terminal.read_until("No module named 'not_there'", "the worker has ended")
        write(tmp_path, "better")
        terminal.read_until("worker.started")
        terminal.type("\x03")
        assert terminal.exit_code() == 0
    assert "Fatal Python error" not in terminal.output
    assert "Traceback" not in terminal.output.rpartition("worker.started")[2]


def child(folder: Path, dsn: str, dashboard_dsn: str) -> subprocess.Popen[str]:
    """Start the worker as `howdah dev` does."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "howdah.cli.dev.child", "app:queue", dashboard_dsn],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment(HOWDAH_DSN=dsn),
    )


def terminate(process: subprocess.Popen[str]) -> None:
    process.terminate()


def close_stdin(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()


@pytest.mark.parametrize("end", [terminate, close_stdin])
def test_a_worker_ends_with_exit_code_0(
    tmp_path: Path, cli: Cli, end: Callable[[subprocess.Popen[str]], None]
) -> None:
    write(tmp_path, "hello")
    with child(tmp_path, cli.dsn, without_password(cli.dsn)) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "worker.started" in line:
                break
        end(process)
        stderr = process.stderr.read()
        assert process.wait(30) == 0, stderr
    assert "Fatal" not in stderr


def test_a_worker_whose_module_cannot_be_imported_ends_with_code_2(
    tmp_path: Path, cli: Cli
) -> None:
    (tmp_path / "app.py").write_text("import not_there")
    with child(tmp_path, cli.dsn, "any") as process:
        assert process.stderr is not None
        stderr = process.stderr.read()
        assert process.wait(30) == 2, stderr
    assert "No module named 'not_there'" in stderr
    assert "Fatal" not in stderr


def test_a_handler_that_reads_stdin_gets_its_end(tmp_path: Path, cli: Cli, jobs: SyncQueue) -> None:
    (tmp_path / "app.py").write_text(
        "from howdah import Queue\nqueue = Queue()\n"
        "@queue.job(max_attempts=1)\ndef ask() -> str:\n    return input()\n"
    )
    handle = jobs.enqueue("ask", max_attempts=1)
    with dev(tmp_path, HOWDAH_DSN=cli.dsn), pytest.raises(JobFailed, match="EOFError"):
        handle.result(timeout=30)


def test_its_worker_ends_if_it_is_killed(tmp_path: Path, cli: Cli, jobs: SyncQueue) -> None:
    write(tmp_path, "hello")
    with dev(tmp_path, HOWDAH_DSN=cli.dsn) as running:
        pid = pid_of_worker(jobs)
        running.process.kill()
        wait_until(lambda: has_ended(pid), "the worker has ended")


def test_without_a_dsn_it_uses_the_embedded_database(tmp_path: Path) -> None:
    write(tmp_path, "hello")
    home = str(tmp_path / "home")
    with dev(tmp_path, HOWDAH_HOME=home) as running:
        running.read_until("worker.started")
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


def test_a_queue_on_another_database_than_the_dashboard_is_an_error(
    tmp_path: Path, cli: Cli, empty_dsn: str
) -> None:
    write(tmp_path, "hello", repr(empty_dsn))
    with dev(tmp_path, HOWDAH_DSN=cli.dsn) as running:
        running.read_until("app:queue uses .* but the dashboard shows")


def test_the_file_watcher_reports_new_changed_and_deleted_files(tmp_path: Path) -> None:
    def write_file(name: str, text: str = "") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    app, nested = write_file("app.py"), write_file("shop/orders/late.py")
    watcher = FileWatcher(tmp_path)
    assert watcher.step() == []
    write_file("app.py", "x = 1")
    new = write_file("shop/new.py")
    assert watcher.step() == [app, new]
    nested.unlink()
    assert watcher.step() == [nested]
    write_file("env/pyvenv.cfg")
    for name in ("notes.txt", "env/lib/a.py", ".git/b.py", "__pycache__/c.py", "node_modules/d.py"):
        write_file(name, "changed")
    assert watcher.step() == []
