"""The server stops by itself when the last process that uses it has ended, also by kill -9."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest

from howdah.embedded import join, log, status, stop
from tests.support.waiting import wait_until

from .support import (
    STOP_DELAY,
    UserProcess,
    ask,
    reapers,
    running,
    server_pid,
    servers,
    until_stopped,
)

LONGER_THAN_THE_DELAY = STOP_DELAY + 0.6


def test_it_stops_after_the_last_release(home: Path) -> None:
    with join():
        assert running(home)
    until_stopped(home)
    assert servers(home) == []


def test_it_stops_after_kill_9_of_its_only_user(home: Path) -> None:
    with UserProcess(home) as user:
        user.line()
        user.kill()
        until_stopped(home)
    assert servers(home) == []


def test_it_runs_while_a_process_uses_it(home: Path) -> None:
    with UserProcess(home) as first, UserProcess(home) as second:
        first.line()
        dsn = second.line()
        first.kill()
        watched_until = time.monotonic() + LONGER_THAN_THE_DELAY
        while time.monotonic() < watched_until:
            assert ask(dsn, "select 1") == "1"
            time.sleep(0.1)
        second.leave()
        until_stopped(home)


def test_a_server_whose_starter_was_killed_at_once_is_stopped_too(empty_home: Path) -> None:
    with UserProcess(empty_home) as starter:
        wait_until(lambda: servers(empty_home), "a process of postgres runs")
        starter.kill()
    wait_until(lambda: not servers(empty_home), "every process of postgres has ended")
    wait_until(lambda: not reapers(empty_home), "the reaper has ended")


def test_a_join_starts_a_missing_reaper(home: Path) -> None:
    with UserProcess(home) as first:
        first.line()
        (reaper,) = reapers(home)
        reaper.kill()
        wait_until(lambda: not reapers(home), "the reaper has ended")
        with UserProcess(home) as second:
            second.line()
            assert len(reapers(home)) == 1
            second.kill()
            first.kill()
            until_stopped(home)


def test_many_users_share_one_reaper(home: Path) -> None:
    with UserProcess(home) as first, UserProcess(home) as second, join():
        first.line()
        second.line()
        assert len(reapers(home)) == 1


def test_a_kept_server_stays_without_users_until_it_is_stopped(home: Path) -> None:
    with UserProcess(home) as user, join(keep=True):
        user.line()
        user.kill()
    watched_until = time.monotonic() + LONGER_THAN_THE_DELAY
    while time.monotonic() < watched_until:
        assert running(home).users == ()
        time.sleep(0.1)
    assert running(home).kept
    assert stop(home)
    until_stopped(home)


def test_the_next_server_after_a_kept_one_is_not_kept(home: Path) -> None:
    join(keep=True).release()
    os.kill(server_pid(home), signal.SIGKILL)
    with join():
        assert not running(home).kept
    until_stopped(home)


def test_a_release_straight_before_a_join_does_not_lose_the_server(home: Path) -> None:
    for _ in range(6):
        with join() as server:
            assert ask(server.dsn, "select 1") == "1"
        time.sleep(STOP_DELAY)  # the reaper is about to stop it


def test_the_log_does_not_grow_forever(folder: Path) -> None:
    path = folder / "server.log"
    writer = log.open_log(path)
    for number in range(2000):
        os.write(writer, f"line {number}\n".encode())
    log.trim(path, max_size=10_000, keep_size=1_000)
    os.write(writer, b"the last line\n")
    os.close(writer)

    lines = path.read_text().splitlines()
    assert path.stat().st_size < 1_100
    assert lines[-2:] == ["line 1999", "the last line"]
    assert all(line.startswith("line ") for line in lines[:-1])


def catches(pid: int, number: signal.Signals) -> bool:
    (mask,) = re.findall(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    return bool(int(mask, 16) >> (number - 1) & 1)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="reads /proc")
def test_the_reaper_trims_the_log(home: Path) -> None:
    with join():
        path = home / "server.log"
        with path.open("ab") as file:
            file.write(b"a line\n" * (log.MAX_SIZE // 7 + 1))
        (reaper,) = reapers(home)
        wait_until(lambda: catches(reaper.pid, signal.SIGALRM), "the reaper is up")
        reaper.send_signal(signal.SIGALRM)  # its timer does the same every minute
        wait_until(lambda: path.stat().st_size <= log.KEEP_SIZE, "the log is short again")
    until_stopped(home)


def test_status_of_a_missing_home_does_not_create_it(empty_home: Path) -> None:
    server = status(empty_home)
    assert (server.running, server.users, server.version) == (False, (), None)
    assert not stop(empty_home)
    assert not empty_home.exists()
