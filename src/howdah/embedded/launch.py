"""Launch: makes sure that the server of a home runs and answers.

It joins a server that runs already, or starts one, in a session of its own so that Ctrl-C does
not reach it. Processes of a killed server need a moment to end, so for ten seconds "still in use"
is a reason to wait, not an error. The caller holds start.lock.
"""

from __future__ import annotations

import os
import re
import time

from howdah.embedded import log
from howdah.embedded.binaries import Binaries, find_binaries
from howdah.embedded.cluster import make_cluster, refuse_dangling_link
from howdah.embedded.home import DATABASE, SUPERUSER, Home, make_folder
from howdah.embedded.locks import Lock, server_lock
from howdah.embedded.postmaster import clear_stale_files, is_alive, running_pid
from howdah.embedded.root import RunAs, prepare
from howdah.embedded.settings import fixed_options, write_root_only_access
from howdah.embedded.unavailable import unavailable
from howdah.embedded.wire import ServerError, Session

LEFTOVER_TIMEOUT = 10.0
START_TIMEOUT = 300.0  # enough for a long crash recovery; a failed start is noticed at once
ANSWER_TIMEOUT = 10.0
POLL_INTERVAL = 0.02

STILL_IN_USE = re.compile(r"lock file .* already exists|shared memory block .* still in use")
NO_SUCH_DATABASE = "3D000"
CANNOT_CONNECT_NOW = "57P03"
TOO_MANY_CONNECTIONS = "53300"

# The shell starts the server and exits, so the server is not our child: it leaves no zombie and
# does not disturb a program that waits for its own children.
DETACHED = '"$@" >&2 & echo $!'


class StillInUse(Exception):
    """A process of an earlier server still runs; it may end in a moment."""


def ensure_running(home: Home) -> Home:
    """Join the server or start it; returns its home, which may have moved (root.py)."""
    until = time.monotonic() + LEFTOVER_TIMEOUT
    while True:
        pid = running_pid(home)
        if pid is not None:
            if _answers(home, pid):
                return home
            until = time.monotonic() + LEFTOVER_TIMEOUT
        try:
            return _start(home)
        except StillInUse as problem:
            if time.monotonic() > until:
                raise unavailable(str(problem)) from None
        time.sleep(POLL_INTERVAL)


def _start(home: Home) -> Home:
    with server_lock(home.path) as lock:
        if not lock.try_acquire():
            raise StillInUse(f"A process of an earlier server still runs in {home.pgdata}.")
        refuse_dangling_link(home)
        who, home, binaries = prepare(home, find_binaries(home.major))
        make_cluster(home, binaries, who, lock)
        _make_socket_folder(home, who)
        clear_stale_files(home)
        home.keep.unlink(missing_ok=True)  # the server that was to be kept up has ended
        if who.serves_root:
            write_root_only_access(home)
        log_start = log.size(home.log)
        pid = _spawn(home, binaries, who, lock)
    if not _answers(home, pid):
        logged = log.since(home.log, log_start)
        if STILL_IN_USE.search(logged):
            raise StillInUse(f"The server in {home.pgdata} could not start:\n{logged}")
        raise unavailable(f"The server in {home.pgdata} did not start. It logged:\n{logged}")
    return home


def _spawn(home: Home, binaries: Binaries, who: RunAs, lock: Lock) -> int:
    log_fd = log.open_log(home.log)
    try:
        done = who.run(
            *("/bin/sh", "-c", DETACHED, "sh", binaries["postgres"], "-D", str(home.pgdata)),
            *fixed_options(home, only_root=who.serves_root),
            stderr=log_fd,
            pass_fds=(lock.fd,),
        )
    finally:
        os.close(log_fd)
    return int(done.stdout)


def _answers(home: Home, pid: int) -> bool:
    """Wait until the server accepts connections; returns False if its process ends."""
    until = time.monotonic() + START_TIMEOUT
    unanswered_until = time.monotonic() + ANSWER_TIMEOUT
    while is_alive(pid):
        try:
            _ensure_database(home)
        except ServerError as error:
            if error.code == TOO_MANY_CONNECTIONS:
                return True
            if error.code != CANNOT_CONNECT_NOW:
                raise unavailable(
                    f"The server in {home.pgdata} refused a connection: {error}"
                ) from None
            unanswered_until = time.monotonic() + ANSWER_TIMEOUT
        except OSError:
            if _says_ready(home) and time.monotonic() > unanswered_until:
                raise unavailable(
                    f"The server in {home.pgdata} runs (pid {pid}), but its socket"
                    f" {home.socket} does not answer.\nRun `howdah pg stop` and try again."
                ) from None
        else:
            return True
        if time.monotonic() > until:
            raise unavailable(
                f"The server in {home.pgdata} is not ready after {START_TIMEOUT:.0f} s.\n"
                f"Its log is {home.log}."
            )
        time.sleep(POLL_INTERVAL)
    return False


def _ensure_database(home: Home) -> None:
    try:
        with Session(home.socket, DATABASE):
            return
    except ServerError as error:
        if error.code != NO_SUCH_DATABASE:
            raise
    with Session(home.socket, SUPERUSER) as session:
        session.run(f"create database {DATABASE}")


def _says_ready(home: Home) -> bool:
    try:
        return (home.pgdata / "postmaster.pid").read_text().splitlines()[7].strip() == "ready"
    except (OSError, IndexError):
        return False


def _make_socket_folder(home: Home, who: RunAs) -> None:
    """Make the folder of the socket, and make sure that no other user owns it."""
    try:
        make_folder(home.sockets)
        fd = os.open(home.sockets, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (NotADirectoryError, PermissionError):
        raise _foreign_folder(home) from None
    try:
        if os.fstat(fd).st_uid not in (os.geteuid(), who.owner):
            raise _foreign_folder(home)
        os.fchmod(fd, 0o700)
        who.give(fd)
    finally:
        os.close(fd)


def _foreign_folder(home: Home) -> Exception:
    return unavailable(f"{home.sockets} belongs to another user. Remove it and try again.")
