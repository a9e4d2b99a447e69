"""howdah worker --health-port: probes get an answer, whatever other clients send."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from howdah import State
from howdah.cli import health
from howdah.client.sync import SyncQueue
from tests.cli.support import Cli, run, started
from tests.support.waiting import wait_until

APP = """
import asyncio, pathlib, time
from howdah import Queue

queue = Queue()

@queue.job
async def block(file: str) -> None:
    while not pathlib.Path(file).exists():  # blocks the loop
        time.sleep(0.02)

@queue.job
async def wait(file: str) -> None:
    while not pathlib.Path(file).exists():
        await asyncio.sleep(0.02)
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


@contextmanager
def worker(app: Path, dsn: str, *options: str) -> Generator[tuple[subprocess.Popen[str], int]]:
    arguments = ("worker", "app:queue", "--health-port", "0", *options)
    with started(*arguments, cwd=app, HOWDAH_DSN=dsn) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if match := re.search(r"health\.listening host=127\.0\.0\.1 port=(\d+)", line):
                yield process, int(match[1])
                return
        pytest.fail("the worker never listened")


def send(port: int, request: bytes) -> bytes:
    """Send these bytes and read to the end of the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(request)
        answer = b""
        while chunk := client.recv(4096):
            answer += chunk
    return answer


def ask(port: int, path: str) -> tuple[int, str]:
    answer = send(port, f"GET {path} HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n".encode()).decode()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split()[1]), body.strip()


def test_probes_report_a_healthy_and_a_stopping_worker(
    app: Path, cli: Cli, jobs: SyncQueue
) -> None:
    go = app / "go"
    with worker(app, cli.dsn) as (process, port):
        wait_until(lambda: ask(port, "/readyz") == (200, "ok"), "it is ready")
        assert ask(port, "/healthz?from=kubelet") == (200, "ok")
        assert ask(port, "/")[0] == 404
        job = jobs.enqueue("wait", {"file": str(go)})
        wait_until(lambda: job.status() is State.RUNNING, "the job runs")
        process.send_signal(signal.SIGTERM)
        wait_until(
            lambda: ask(port, "/readyz") == (503, "the worker is stopping"), "it is stopping"
        )
        assert ask(port, "/healthz") == (200, "ok")
        go.touch()
        assert process.wait(30) == 0


def test_a_blocked_loop_is_reported_only_after_the_limit(
    app: Path, cli: Cli, jobs: SyncQueue
) -> None:
    go = app / "go"
    for stuck_after, expected in (("10m", (200, "ok")), ("1s", (503, "the event loop is blocked"))):
        with worker(app, cli.dsn, "--health-stuck-after", stuck_after) as (process, port):
            job = jobs.enqueue("block", {"file": str(go)})
            wait_until(lambda job=job: job.status() is not State.PENDING, "the job is claimed")
            wait_until(lambda port=port, e=expected: ask(port, "/healthz") == e, str(expected))
            assert ask(port, "/readyz") == (200, "ok")  # its beats have a thread of their own
            go.touch()
            wait_until(lambda job=job: job.status() is State.COMPLETED, "the job ended")
            wait_until(lambda port=port: ask(port, "/healthz")[0] == 200, "the loop responds again")
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        go.unlink()


def test_a_worker_without_a_database_is_alive_and_not_ready(app: Path) -> None:
    with worker(app, "postgresql://somebody:secret@127.0.0.1:9/nothing") as (process, port):
        assert ask(port, "/healthz") == (200, "ok")
        assert ask(port, "/readyz") == (503, "the worker has not started")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_a_worker_whose_beats_do_not_get_through_is_not_ready(app: Path, cli: Cli) -> None:
    with worker(app, cli.dsn, "--silent-after", "1s") as (_, port):
        wait_until(lambda: ask(port, "/readyz") == (200, "ok"), "it is ready")
        with psycopg.connect(cli.dsn) as connection:
            connection.execute("lock table howdah.workers in access exclusive mode")
            silent = (503, "no beat reaches the database")
            wait_until(lambda: ask(port, "/readyz") == silent, "it is silent")
            assert ask(port, "/healthz") == (200, "ok")
        wait_until(lambda: ask(port, "/readyz") == (200, "ok"), "it is ready again")


def test_no_port_is_open_unless_it_is_named(app: Path, cli: Cli) -> None:
    with started("worker", "app:queue", cwd=app, HOWDAH_DSN=cli.dsn) as process:
        assert process.stderr is not None
        assert any("worker.started" in line for line in process.stderr)
        open_ports = psutil.Process(process.pid).net_connections("inet")
        assert [socket for socket in open_ports if socket.status == psutil.CONN_LISTEN] == []


def test_a_port_that_is_taken_is_an_error_at_once(app: Path, cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        done = run("worker", "app:queue", "--health-port", port, cwd=app, HOWDAH_DSN=cli.dsn)
    assert done.returncode == 2
    assert f"cannot listen for probes at 127.0.0.1:{port}" in done.stderr
    assert "choose another --health-port" in done.stderr


GARBAGE = [
    b"\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET /healthz\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    b"GET /\xff\xfe HTTP/1.1\r\n\r\n",
    b"POST /healthz HTTP/1.1\r\nContent-Length: 9\r\n\r\n",
    b"GET http://other/healthz HTTP/1.1\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nX: " + b"x" * health.MAX_HEAD * 4 + b"\r\n\r\n",
    b"A" * health.MAX_HEAD * 4,
]


def test_bad_requests_disturb_neither_probes_nor_jobs(app: Path, cli: Cli, jobs: SyncQueue) -> None:
    with worker(app, cli.dsn) as (process, port), ExitStack() as held:
        wait_until(lambda: ask(port, "/readyz") == (200, "ok"), "it is ready")
        for request in GARBAGE:
            try:
                answer = send(port, request)
            except ConnectionError:  # closed before all of it was read
                continue
            assert not answer.startswith(b"HTTP/1.1 2"), request[:40]
        # more slow clients than the limit: the oldest are closed
        slow = [
            held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
            for _ in range(health.MAX_CONNECTIONS * 2)
        ]
        for client in slow:
            with suppress(ConnectionError):
                client.sendall(b"GET /heal")
        assert ask(port, "/healthz") == (200, "ok")
        assert ask(port, "/readyz") == (200, "ok")
        go = app / "go"
        go.touch()
        assert jobs.enqueue("wait", {"file": str(go)}).result(30) is None
        assert slow[-1].recv(100) == b""  # ended by the server: it does not wait for ever
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
