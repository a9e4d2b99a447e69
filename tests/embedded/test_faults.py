"""After any crash, the next start works."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from howdah.embedded import join, launch, status, stop
from howdah.embedded.binaries import find_binaries
from howdah.embedded.postmaster import is_alive
from howdah.errors import EmbeddedUnavailable
from tests.support.waiting import wait_until

from .support import UserProcess, ask, run, server_pid


@pytest.fixture
def unrelated() -> Iterator[int]:
    """A running process that has nothing to do with PostgreSQL."""
    process = subprocess.Popen(["sleep", "60"])
    yield process.pid
    assert process.poll() is None, "an unrelated process was killed"
    process.kill()
    process.wait()


@pytest.fixture
def dead() -> int:
    """A pid that no process has."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def pid_file(home: Path, pid: int) -> None:
    (home / "pg" / "postmaster.pid").write_text(
        f"{pid}\n{home / 'pg'}\n1700000000\n5432\n{home / 's'}\n\n  1234567         0\nready   \n"
    )


def socket_lock_file(home: Path, pid: int) -> None:
    (home / "s").mkdir(mode=0o700)
    (home / "s" / ".s.PGSQL.5432.lock").write_text(f"{pid}\n{home / 'pg'}\n1700000000\n5432\n")


@pytest.mark.parametrize("write_file", [pid_file, socket_lock_file])
@pytest.mark.parametrize("process", ["dead", "unrelated"])
def test_a_stale_file_with_a_wrong_pid_does_not_prevent_the_start(
    home: Path, request: pytest.FixtureRequest, write_file: object, process: str
) -> None:
    pid: int = request.getfixturevalue(process)
    assert callable(write_file)
    write_file(home, pid)
    assert not status(home).running
    assert not stop(home)
    with join() as server:
        assert ask(server.dsn, "select 1") == "1"


def test_an_unreadable_pid_file_does_not_prevent_the_start(home: Path) -> None:
    (home / "pg" / "postmaster.pid").write_text("nonsense\n")
    with join() as server:
        assert ask(server.dsn, "select 1") == "1"


def test_the_pid_of_another_clusters_server_is_not_ours(home: Path, template_home: Path) -> None:
    with join(template_home):
        other = server_pid(template_home)
        pid_file(home, other)
        assert not status(home).running
        with join(home):
            assert server_pid(home) != other
            assert server_pid(template_home) == other
    stop(template_home)


def test_after_kill_9_a_new_server_starts_and_no_data_is_lost(home: Path) -> None:
    with join() as server:
        run(server.dsn, "create table written (n int)", "insert into written values (1)")
        os.kill(server_pid(home), signal.SIGKILL)
        with join():
            assert ask(server.dsn, "select n from written") == "1"


@pytest.mark.parametrize("started", ["by us", "by hand"])
def test_a_process_of_the_killed_server_is_waited_for(home: Path, started: str) -> None:
    """Ours holds server.lock; that of a server started by hand holds only shared memory."""
    server = start_by_hand(home) if started == "by hand" else None
    with join() as joined, psycopg.connect(joined.dsn) as connection:
        backend = psutil.Process(connection.info.backend_pid)
        postmaster = server_pid(home)
        backend.suspend()
        os.kill(postmaster, signal.SIGKILL)
        if server:
            server.wait()
        with UserProcess(home) as next_user:
            try:
                wait_until(lambda: next_user.pid in status(home).users, "the next user waits")
                if started == "by hand":
                    wait_until(
                        lambda: "still in use" in (home / "server.log").read_text(), "it tried"
                    )
                assert not status(home).running
            finally:
                backend.resume()
            assert ask(next_user.line(), "select 1") == "1"


def test_a_process_that_does_not_end_is_reported_after_a_timeout(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "LEFTOVER_TIMEOUT", 0.3)
    with join() as server, psycopg.connect(server.dsn) as connection:
        backend = psutil.Process(connection.info.backend_pid)
        backend.suspend()
        try:
            os.kill(server_pid(home), signal.SIGKILL)
            with pytest.raises(EmbeddedUnavailable, match="still runs"):
                join()
        finally:
            backend.resume()
        join().stop()  # it works now: the process has ended


def test_a_server_that_was_started_by_hand_is_joined(home: Path) -> None:
    by_hand = start_by_hand(home)
    with join() as server:
        assert ask(server.dsn, "select 1") == "1"
        assert server_pid(home) == by_hand.pid
        server.stop()
    assert by_hand.wait(timeout=20) == 0


def test_an_unfinished_initdb_is_removed(empty_home: Path) -> None:
    (empty_home / "pg.making" / "base").mkdir(parents=True)
    (empty_home / "pg.making" / "PG_VERSION").write_text("18\n")
    with join() as server:
        assert ask(server.dsn, "select current_database()") == "howdah"
        assert not (empty_home / "pg.making").exists()


def test_an_initdb_whose_starter_was_killed_is_waited_for(empty_home: Path) -> None:
    with UserProcess(empty_home) as starter:
        wait_until(
            lambda: (empty_home / "pg.making" / "pg" / "PG_VERSION").exists(), "initdb has begun"
        )
        starter.kill()
    assert not (empty_home / "pg").exists()
    with join() as server:
        assert ask(server.dsn, "select current_database()") == "howdah"
        assert not (empty_home / "pg.making").exists()


def test_a_program_that_is_just_being_loaded_counts_as_alive() -> None:
    reexec = 'test "$1" -gt 0 && exec /bin/sh -c "$0" "$0" "$(($1 - 1))"'
    process = subprocess.Popen(["/bin/sh", "-c", reexec, reexec, "300"])
    alive = True
    while process.poll() is None:
        assert alive
        alive = is_alive(process.pid)


def test_the_error_says_why_the_server_cannot_start(home: Path) -> None:
    with (home / "pg" / "postgresql.conf").open("a") as file:
        file.write("shared_buffers = 'a lot'\n")
    with pytest.raises(EmbeddedUnavailable, match='invalid value for parameter "shared_buffers"'):
        join()
    assert status(home).users == ()


def test_the_error_names_howdah_home_if_it_cannot_be_made(folder: Path) -> None:
    (folder / "file").write_text("not a folder")
    with pytest.raises(EmbeddedUnavailable, match="HOWDAH_HOME"):
        join(folder / "file" / "home")


def start_by_hand(home: Path) -> subprocess.Popen[bytes]:
    """Start a server on the cluster without howdah, like a person would."""
    (home / "s").mkdir(mode=0o700)
    prefix = ["unshare", "--user", "--map-user=65534", "--map-group=65534"]
    process = subprocess.Popen(
        [
            *(prefix if os.geteuid() == 0 else []),
            *(find_binaries()["postgres"], "-D", str(home / "pg")),
            *("-c", "listen_addresses=", "-c", f"unix_socket_directories={home / 's'}"),
        ],
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: status(home).running, "the server is up")
    return process
