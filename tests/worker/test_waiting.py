"""A worker that starts before its database waits for it, and begins by itself.

What waiting does not heal ends it at once: a wrong password, no such database, no schema, a role
that may look and not work.
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
from tests.cli.support import run, started, until_true
from tests.stories.server import PgServer
from tests.support.processes import ROOT
from tests.support.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("waiting")]

APP = "tests.worker.app:queue"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[PgServer]:
    made = PgServer(tmp_path_factory.mktemp("waiting")).make().start()
    SyncQueue(made.dsn()).install()
    yield made
    made.crash()


@pytest.fixture
def away(server: PgServer) -> Generator[PgServer]:
    """The same server, stopped; running again when the test is over."""
    server.stop()
    yield server
    if not server.alive:
        server.start()


def lines_until(process: subprocess.Popen[str], word: str) -> list[str]:
    """Read its log up to the line with this word."""
    assert process.stderr is not None
    lines: list[str] = []
    for line in process.stderr:
        lines.append(line)
        if word in line:
            return lines
    pytest.fail(f"the worker ended and never said {word}: {lines}")


def test_it_says_that_it_waits_and_begins_when_the_database_is_there(away: PgServer) -> None:
    with started("worker", APP, cwd=ROOT, HOWDAH_DSN=away.dsn()) as worker:
        waits = [lines_until(worker, "worker.waiting") for _ in range(4)]
        assert all(len(lines) == 1 for lines in waits), "one line per step, and nothing else"
        pauses = [float(re.findall(r"retry_in=([\d.]+)s", lines[-1])[0]) for lines in waits]
        assert pauses == [0.1, 0.2, 0.4, 0.8], "each twice as long as the last"
        assert "cannot reach" in waits[0][-1]
        assert away.password not in "".join(line for lines in waits for line in lines)
        away.start()
        lines_until(worker, "worker.started")
        with SyncQueue(away.dsn()) as queue:
            assert queue.enqueue("double", {"n": 21}).result(timeout=30) == 42
        worker.terminate()
        assert worker.wait(30) == 0


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_told_to_go_while_it_waits_it_goes(away: PgServer, how: signal.Signals) -> None:
    with started("worker", APP, cwd=ROOT, HOWDAH_DSN=away.dsn()) as worker:
        lines_until(worker, "worker.waiting")
        worker.send_signal(how)
        _, said = worker.communicate(timeout=30)  # it would wait for ever
        assert worker.returncode == 0
        assert "Traceback" not in said


async def test_a_program_that_shuts_its_worker_down_meanwhile_goes_on(
    away: PgServer, caplog: pytest.LogCaptureFixture
) -> None:
    queue = Queue(away.dsn())

    @queue.job
    async def mail() -> None: ...

    worker = queue.worker()
    running = asyncio.create_task(worker.run())
    await eventually(lambda: "worker.waiting" in caplog.text, "it waits")
    worker.shut_down()
    async with asyncio.timeout(20):
        await running
    await queue.close()


async def test_a_server_that_takes_no_writes_yet_is_waited_for(
    server: PgServer, caplog: pytest.LogCaptureFixture
) -> None:
    """As a standby takes none until it is promoted."""
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
        await eventually(lambda: "takes no writes" in caplog.text, "it waits")
    finally:
        set_read_only(server, "off")
    await eventually(lambda: is_completed(queue, handle.id), "it begins by itself")
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


def onlooker(server: PgServer) -> str:
    """Make a role that may look at everything; returns its DSN."""
    role = f"onlooker_{secrets.token_hex(4)}"
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(f"create role {role} login password 'looks'".encode())
        names = {name: f"{role}_{name}" for name in ("producer", "worker")}
        for name in names.values():
            connection.execute(f"create role {name}".encode())
        connection.execute(engine_files.grants(**names, observer=role).encode())
    return server.dsn().replace(f"postgres:{server.password}@", f"{role}:looks@")


def without_schema(server: PgServer) -> str:
    name = f"bare_{secrets.token_hex(4)}"
    server.value(f"create database {name}")
    return server.dsn(name)


HOPELESS = {
    "wrong password": (4, "password authentication failed"),
    "no such database": (4, "does not exist"),
    "no schema": (5, "howdah install"),
    "may only look": (4, "howdah sql --grants"),
}


@pytest.mark.parametrize("what", HOPELESS)
def test_what_waiting_does_not_heal_ends_it_at_once(server: PgServer, what: str) -> None:
    dsn = {
        "wrong password": lambda: server.dsn().replace(server.password, "guessed"),
        "no such database": lambda: server.dsn("nowhere"),
        "no schema": lambda: without_schema(server),
        "may only look": lambda: onlooker(server),
    }[what]()
    ended = run("worker", APP, cwd=ROOT, HOWDAH_DSN=dsn)
    code, words = HOPELESS[what]
    assert ended.returncode == code, ended.stderr
    assert ended.stderr.startswith("error: ")
    assert words in ended.stderr
    assert "worker.waiting" not in ended.stderr


def test_a_worker_whose_server_starts_slowly_misses_nothing(away: PgServer) -> None:
    """Several workers wait at once; each begins, and the jobs of before are done."""
    with (
        started("worker", APP, cwd=ROOT, HOWDAH_DSN=away.dsn()) as one,
        started("worker", APP, cwd=ROOT, HOWDAH_DSN=away.dsn()) as two,
    ):
        for worker in (one, two):
            lines_until(worker, "worker.waiting")
        away.start()
        for worker in (one, two):
            lines_until(worker, "worker.started")
        with SyncQueue(away.dsn()) as queue:
            handles = [queue.enqueue("double", {"n": n}) for n in range(20)]
            until_true(lambda: all(h.status() is State.COMPLETED for h in handles), "all done")
            assert len(queue.workers()) == 2
