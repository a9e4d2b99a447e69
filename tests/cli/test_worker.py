"""howdah worker: finds the queue, runs jobs, and stops on a signal."""

from __future__ import annotations

import json
import logging
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from howdah import State
from howdah.client.sync import SyncQueue
from howdah.run.job_logging import Json, Plain
from tests.cli.support import Cli, invoke, run, started
from tests.support.waiting import wait_until

APP = """
import asyncio, os, pathlib
from howdah import JobContext, Queue

queue = Queue()
nothing = Queue()
number = 7

class Sync:
    asynchronous = queue

@queue.job
async def gate(ctx: JobContext, file: str) -> str:
    while not pathlib.Path(file).exists():
        await asyncio.sleep(0.02)
    return "through"

@queue.job
def where() -> str:
    return str(type(asyncio.get_event_loop_policy()))

@queue.job(run="process", queue="slow")
def elsewhere() -> int:
    return os.getpid()
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


def read_until(process: subprocess.Popen[str], word: str) -> str:
    """Read its log up to the line with this word."""
    assert process.stderr is not None
    for line in process.stderr:
        if word in line:
            return line
    pytest.fail(f"the worker ended and never logged {word}")


def running(jobs: SyncQueue, job_type: str) -> Callable[[], bool]:
    return lambda: [job.status for job in jobs.jobs(job_type=job_type)] == [State.RUNNING]


def test_sigterm_lets_running_jobs_end_and_takes_no_new_ones(
    app: Path, cli: Cli, jobs: SyncQueue
) -> None:
    file = app / "open"
    slow = jobs.enqueue("gate", {"file": str(file)})
    with started("worker", "app:queue", cwd=app, HOWDAH_DSN=cli.dsn) as worker:
        wait_until(running(jobs, "gate"), "the job runs")
        worker.send_signal(signal.SIGTERM)
        read_until(worker, "worker.stopping")
        late = jobs.enqueue("where")
        file.touch()
        assert worker.wait(30) == 0
    assert (slow.result(), late.status()) == ("through", State.PENDING)
    assert [worker for worker in jobs.workers() if worker.alive] == []


def test_a_second_sigint_releases_everything_at_once(app: Path, cli: Cli, jobs: SyncQueue) -> None:
    slow = jobs.enqueue("gate", {"file": str(app / "never")})
    with started("worker", "app:queue", "--dsn", cli.dsn, cwd=app) as worker:
        wait_until(running(jobs, "gate"), "the job runs")
        worker.send_signal(signal.SIGINT)
        read_until(worker, "worker.stopping")
        worker.send_signal(signal.SIGINT)
        assert worker.wait(25) == 0  # well within the grace
    job = slow.job()
    assert (job.status, job.attempts, job.errors) == (State.PENDING, 0, [])


def test_a_signal_before_it_has_started_ends_it(app: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent_server:
        dsn = f"postgresql://x@127.0.0.1:{silent_server.getsockname()[1]}/x"
        with started("worker", "app:queue", "--dsn", dsn, cwd=app) as worker:
            silent_server.settimeout(30)
            with silent_server.accept()[0]:  # the server never answers
                worker.send_signal(signal.SIGTERM)
                assert worker.wait(30) == 0


def test_options_reach_the_worker_and_the_log_is_json(app: Path, cli: Cli, jobs: SyncQueue) -> None:
    other, chosen = jobs.enqueue("where"), jobs.enqueue("elsewhere")
    options = ("--concurrency", 3, "--types", "elsewhere, gate", "--processes", 1, "--log-json")
    with started("worker", "app:queue", *options, "--dsn", cli.dsn, cwd=app) as worker:
        line = json.loads(read_until(worker, "worker.started"))
        assert line["level"] == "info"
        assert line["logger"] == "howdah.worker"
        assert "types=elsewhere,gate concurrency=3" in line["message"]
        assert chosen.result(timeout=30) not in (worker.pid, None)
        (health,) = jobs.workers()
        assert (health.info["pid"], health.info["slots"]) == (worker.pid, 3)
        worker.terminate()
        assert worker.wait(30) == 0
    assert other.status() is State.PENDING


def test_a_worker_of_a_queue_runs_its_types(app: Path, cli: Cli, jobs: SyncQueue) -> None:
    other, chosen = jobs.enqueue("where"), jobs.enqueue("elsewhere")
    with started("worker", "app:queue", "--queue", "slow", "--dsn", cli.dsn, cwd=app) as worker:
        assert "types=elsewhere concurrency" in read_until(worker, "worker.started")
        assert chosen.result(timeout=30)
        worker.terminate()
        assert worker.wait(30) == 0
    assert other.status() is State.PENDING
    refused = run("worker", "app:queue", "--queue", "default,slwo", "--dsn", cli.dsn, cwd=app)
    assert refused.returncode == 2
    assert "no job type has the queue 'slwo' (did you mean 'slow'?)" in refused.stderr


def test_a_sync_queue_is_a_queue_too(app: Path, cli: Cli, jobs: SyncQueue) -> None:
    handle = jobs.enqueue("where")
    with started("worker", "app:Sync", "--dsn", cli.dsn, cwd=app) as worker:
        assert handle.result(timeout=30)
        worker.terminate()
        assert worker.wait(30) == 0


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("app", "'app' is not MODULE:QUEUE: write such as app:queue"),
        ("app:", "'app:' is not MODULE:QUEUE"),
        ("app.py:queue", "name the module, app:queue"),
        ("nope:queue", "there is no module 'nope'"),
        ("app.nope:queue", "there is no module 'app.nope'"),
        ("app:queu", "no attribute 'queu'; the module has app:queue and app:nothing"),
        ("app:number", "is of type int, not a Queue"),
        ("app:nothing", "app:nothing has no job types: register functions with @nothing.job"),
    ],
)
def test_a_wrong_name_is_one_line_of_error(app: Path, target: str, expected: str) -> None:
    refused = run("worker", target, cwd=app)
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: ")
    assert len(refused.stderr.splitlines()) == 1
    assert expected in refused.stderr


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import no_such_library", "ModuleNotFoundError: No module named 'no_such_library'"),
        ("1 / 0", "ZeroDivisionError"),
        ("def (", "SyntaxError"),
    ],
)
def test_an_error_in_the_module_is_printed_with_its_traceback(
    tmp_path: Path, code: str, expected: str
) -> None:
    (tmp_path / "broken.py").write_text(f"\n\n{code}\n")
    refused = run("worker", "broken:queue", cwd=tmp_path)
    assert refused.returncode == 2
    assert expected in refused.stderr
    assert f'{tmp_path}/broken.py", line 3' in refused.stderr
    assert "importlib" not in refused.stderr
    assert "howdah/cli" not in refused.stderr
    assert refused.stderr.splitlines()[-1] == "error: cannot import broken: correct the error above"


def test_a_refused_registration_is_one_line_of_error(tmp_path: Path) -> None:
    (tmp_path / "twice.py").write_text(
        "from howdah import Queue\nqueue = Queue()\n"
        "@queue.job\ndef a() -> None: ...\n@queue.job(name='a')\ndef b() -> None: ...\n"
    )
    refused = run("worker", "twice:queue", cwd=tmp_path)
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1
    assert "job type 'a' is twice.a already" in refused.stderr


def test_an_unknown_type_is_refused(app: Path, cli: Cli) -> None:
    refused = run("worker", "app:queue", "--types", "gate,nope", "--dsn", cli.dsn, cwd=app)
    assert refused.returncode == 2
    assert "no function is registered for job type 'nope'" in refused.stderr


def test_dsn_does_not_override_a_queue_that_has_its_own(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "own.py").write_text(
        "from howdah import Queue\nqueue = Queue('postgresql://x:secret@localhost/own')\n"
        "@queue.job\ndef a() -> None: ...\n"
    )
    refused = run("worker", "own:queue", "--dsn", cli.dsn, cwd=tmp_path)
    assert refused.returncode == 2
    assert "has its own DSN, postgresql://x:***@localhost/own" in refused.stderr


def test_a_database_without_the_schema_is_refused_at_once(app: Path, empty_dsn: str) -> None:
    refused = run("worker", "app:queue", "--dsn", empty_dsn, cwd=app)
    assert refused.returncode == 5
    assert "howdah install" in refused.stderr


@pytest.mark.parametrize("option", ["--grace", "--silent-after", "--poll", "--stale-after"])
def test_a_duration_has_a_unit(option: str) -> None:
    refused = invoke("worker", "app:queue", option, "30")
    assert refused.exit_code == 2
    assert "write a number and a unit" in refused.stderr


def test_a_log_record_is_one_line() -> None:
    record = logging.LogRecord("x", logging.ERROR, "", 0, "a\nb \x1b[2J", None, None)
    assert Plain().format(record).endswith(r"ERROR   a\nb \x1b[2J")
    assert json.loads(Json().format(record))["message"] == "a\nb \x1b[2J"
