"""A worker that starts before its database waits for it, and then begins.

An error that waiting cannot fix ends it at once: a wrong password, no such database, no schema, a
role that may only read.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import signal
import subprocess
from collections.abc import Generator

import psycopg
import pytest

from howdah import HowdahError, Queue, State
from howdah.client.sync import SyncQueue
from howdah.store import engine_files
from tests.cli.support import run, started
from tests.support.postgres_server import PgServer
from tests.support.processes import ROOT
from tests.support.waiting import eventually, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("waiting")]

APP = "tests.worker.app:queue"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[PgServer]:
    server = PgServer(tmp_path_factory.mktemp("waiting")).make().start()
    SyncQueue(server.dsn()).install()
    yield server
    server.crash()


@pytest.fixture
def stopped_server(server: PgServer) -> Generator[PgServer]:
    """The same server, stopped; running again when the test is over."""
    server.stop()
    yield server
    if not server.alive:
        server.start()


def lines_until(process: subprocess.Popen[str], word: str) -> list[str]:
    """Read the log of the worker up to the line with this word."""
    assert process.stderr is not None
    lines: list[str] = []
    for line in process.stderr:
        lines.append(line)
        if word in line:
            return lines
    pytest.fail(f"the worker ended and did not log {word}: {lines}")


def test_it_logs_that_it_waits_and_starts_when_the_database_is_there(
    stopped_server: PgServer,
) -> None:
    with started("worker", APP, cwd=ROOT, HOWDAH_DSN=stopped_server.dsn()) as worker:
        waits = [lines_until(worker, "worker.waiting") for _ in range(4)]
        assert all(len(lines) == 1 for lines in waits), "exactly one line per attempt"
        pauses = [float(re.findall(r"retry_in=([\d.]+)s", lines[-1])[0]) for lines in waits]
        assert pauses == [0.1, 0.2, 0.4, 0.8], "each pause is twice as long as the last"
        assert "cannot reach" in waits[0][-1]
        assert stopped_server.password not in "".join(line for lines in waits for line in lines)
        stopped_server.start()
        lines_until(worker, "worker.started")
        with SyncQueue(stopped_server.dsn()) as queue:
            assert queue.enqueue("double", {"n": 21}).result(timeout=30) == 42
        worker.terminate()
        assert worker.wait(30) == 0


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_worker_that_waits(
    stopped_server: PgServer, signal_number: signal.Signals
) -> None:
    with started("worker", APP, cwd=ROOT, HOWDAH_DSN=stopped_server.dsn()) as worker:
        lines_until(worker, "worker.waiting")
        worker.send_signal(signal_number)
        _, stderr = worker.communicate(timeout=30)  # without the signal it would wait forever
        assert worker.returncode == 0
        assert "Traceback" not in stderr


async def test_a_worker_that_waits_can_be_shut_down(
    stopped_server: PgServer, caplog: pytest.LogCaptureFixture
) -> None:
    queue = Queue(stopped_server.dsn())

    @queue.job
    async def mail() -> None: ...

    worker = queue.worker()
    running = asyncio.create_task(worker.run())
    await eventually(lambda: "worker.waiting" in caplog.text, "the worker waits")
    worker.shut_down()
    async with asyncio.timeout(20):
        await running
    await queue.close()


async def test_a_worker_waits_for_a_server_that_takes_no_writes(
    server: PgServer, caplog: pytest.LogCaptureFixture
) -> None:
    """A standby takes no writes until it is promoted."""
    queue = Queue(server.dsn())

    @queue.job
    async def mail() -> str:
        return "sent"

    handle = await mail.enqueue()
    await queue.close()
    set_read_only(server, "on")
    try:
        worker = queue.worker()
        running = asyncio.create_task(worker.run())
        await eventually(lambda: "takes no writes" in caplog.text, "the worker waits")
    finally:
        set_read_only(server, "off")
    await eventually(lambda: is_completed(queue, handle.id), "the worker starts by itself")
    worker.shut_down()
    async with asyncio.timeout(30):
        await running
    await queue.close()


def set_read_only(server: PgServer, on_or_off: str) -> None:
    server.value(f"alter system set default_transaction_read_only = {on_or_off}")
    server.value("select pg_reload_conf()")


async def is_completed(queue: Queue, id: object) -> bool:
    try:
        return (await queue.get(str(id))).status is State.COMPLETED
    except HowdahError:
        return False


def read_only_role(server: PgServer) -> str:
    """Create a role that can only read; returns its DSN."""
    role = f"reader_{secrets.token_hex(4)}"
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(f"create role {role} login password 'reads'".encode())
        names = {name: f"{role}_{name}" for name in ("producer", "worker")}
        for name in names.values():
            connection.execute(f"create role {name}".encode())
        connection.execute(engine_files.grants(**names, observer=role).encode())
    return server.dsn().replace(f"postgres:{server.password}@", f"{role}:reads@")


def without_schema(server: PgServer) -> str:
    name = f"bare_{secrets.token_hex(4)}"
    server.value(f"create database {name}")
    return server.dsn(name)


PERMANENT_ERRORS = {
    "wrong password": (4, "password authentication failed"),
    "no such database": (4, "does not exist"),
    "no schema": (5, "howdah install"),
    "may only read": (4, "howdah sql --grants"),
}


@pytest.mark.parametrize("problem", PERMANENT_ERRORS)
def test_an_error_that_waiting_cannot_fix_ends_the_worker_at_once(
    server: PgServer, problem: str
) -> None:
    dsn = {
        "wrong password": lambda: server.dsn().replace(server.password, "guessed"),
        "no such database": lambda: server.dsn("nowhere"),
        "no schema": lambda: without_schema(server),
        "may only read": lambda: read_only_role(server),
    }[problem]()
    ended = run("worker", APP, cwd=ROOT, HOWDAH_DSN=dsn)
    code, message = PERMANENT_ERRORS[problem]
    assert ended.returncode == code, ended.stderr
    assert ended.stderr.startswith("error: ")
    assert message in ended.stderr
    assert "worker.waiting" not in ended.stderr


def test_several_workers_wait_for_a_server_and_run_all_jobs(stopped_server: PgServer) -> None:
    """Several workers wait at once; each starts, and all jobs are completed."""
    with (
        started("worker", APP, cwd=ROOT, HOWDAH_DSN=stopped_server.dsn()) as first,
        started("worker", APP, cwd=ROOT, HOWDAH_DSN=stopped_server.dsn()) as second,
    ):
        for worker in (first, second):
            lines_until(worker, "worker.waiting")
        stopped_server.start()
        for worker in (first, second):
            lines_until(worker, "worker.started")
        with SyncQueue(stopped_server.dsn()) as queue:
            handles = [queue.enqueue("double", {"n": n}) for n in range(20)]
            wait_until(lambda: all(h.status() is State.COMPLETED for h in handles), "all done")
            assert len(queue.workers()) == 2
