"""Launch: see to it that the server of a home is up, and answers.

Comes after   cluster.py   which made the data directory
Comes before  server.py    which hands out the DSN

A server that runs already is joined; otherwise one is started, in a session of its own so
that Ctrl-C does not reach it. What a killed server left behind needs a moment to go, so for
ten seconds "still in use" is a reason to wait and not to fail. Asks for start.lock throughout.
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
from howdah.embedded.postmaster import clear_stale_files, is_alive, living
from howdah.embedded.root import RunAs, prepare
from howdah.embedded.settings import promises, write_only_root
from howdah.embedded.unavailable import unavailable
from howdah.embedded.wire import Conversation, Refused

LEFTOVERS = 10.0
RECOVERY = 300.0  # a large crash recovery; a server that fails to start is noticed at once
UNANSWERED = 10.0
TICK = 0.02

STILL_IN_USE = re.compile(r"lock file .* already exists|shared memory block .* still in use")
NO_SUCH_DATABASE = "3D000"
NOT_YET_OR_NO_MORE = "57P03"
ALL_SEATS_TAKEN = "53300"

# The shell is there to be the parent and to go away: the server is then nobody's child, and
# no zombie and no surprise for a program that waits for its own children.
DETACHED = '"$@" >&2 & echo $!'


class StillInUse(Exception):
    """Something of an earlier server is in the way, and may be gone in a moment."""


def ensure_running(home: Home) -> Home:
    """Join the server or start it; answers where it turned out to be."""
    until = time.monotonic() + LEFTOVERS
    while True:
        pid = living(home)
        if pid is not None:
            if _answers(home, pid):
                return home
            until = time.monotonic() + LEFTOVERS
        try:
            return _start(home)
        except StillInUse as problem:
            if time.monotonic() > until:
                raise unavailable(str(problem)) from None
        time.sleep(TICK)


def _start(home: Home) -> Home:
    with server_lock(home.path) as lock:
        if not lock.try_acquire():
            raise StillInUse(f"A process of an earlier server is still at work in {home.pgdata}.")
        refuse_dangling_link(home)
        who, home, binaries = prepare(home, find_binaries(home.major))
        make_cluster(home, binaries, who, lock)
        _make_socket_folder(home, who)
        clear_stale_files(home)
        home.keep.unlink(missing_ok=True)  # the one that was to be kept has ended
        if who.borrowed:
            write_only_root(home)
        before = log.mark(home.log)
        pid = _spawn(home, binaries, who, lock)
    if not _answers(home, pid):
        said = log.since(home.log, before)
        if STILL_IN_USE.search(said):
            raise StillInUse(f"The server in {home.pgdata} could not start:\n{said}")
        raise unavailable(f"The server in {home.pgdata} did not start. It said:\n{said}")
    return home


def _spawn(home: Home, binaries: Binaries, who: RunAs, lock: Lock) -> int:
    said = log.open_log(home.log)
    try:
        done = who.run(
            *("/bin/sh", "-c", DETACHED, "sh", binaries["postgres"], "-D", str(home.pgdata)),
            *promises(home, only_root=who.borrowed),
            stderr=said,
            pass_fds=(lock.fd,),
        )
    finally:
        os.close(said)
    return int(done.stdout)


def _answers(home: Home, pid: int) -> bool:
    """Wait until the server takes connections; False once its process has gone."""
    until = time.monotonic() + RECOVERY
    silent_until = time.monotonic() + UNANSWERED
    while is_alive(pid):
        try:
            _ensure_database(home)
        except Refused as refusal:
            if refusal.code == ALL_SEATS_TAKEN:
                return True
            if refusal.code != NOT_YET_OR_NO_MORE:
                raise unavailable(f"The server in {home.pgdata} says: {refusal}") from None
            silent_until = time.monotonic() + UNANSWERED
        except OSError:
            if _says_ready(home) and time.monotonic() > silent_until:
                raise unavailable(
                    f"The server in {home.pgdata} runs (pid {pid}), but its socket"
                    f" {home.socket} does not answer.\nRun `howdah pg stop` and try again."
                ) from None
        else:
            return True
        if time.monotonic() > until:
            raise unavailable(
                f"The server in {home.pgdata} is still not ready after {RECOVERY:.0f} s.\n"
                f"See {home.log}."
            )
        time.sleep(TICK)
    return False


def _ensure_database(home: Home) -> None:
    try:
        with Conversation(home.socket, DATABASE):
            return
    except Refused as refusal:
        if refusal.code != NO_SUCH_DATABASE:
            raise
    with Conversation(home.socket, SUPERUSER) as session:
        session.run(f"create database {DATABASE}")


def _says_ready(home: Home) -> bool:
    try:
        return (home.pgdata / "postmaster.pid").read_text().splitlines()[7].strip() == "ready"
    except (OSError, IndexError):
        return False


def _make_socket_folder(home: Home, who: RunAs) -> None:
    """Make the folder that is the door, and be sure that nobody else holds it open."""
    try:
        make_folder(home.sockets)
        fd = os.open(home.sockets, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (NotADirectoryError, PermissionError):
        raise _squatted(home) from None
    try:
        if os.fstat(fd).st_uid not in (os.geteuid(), who.owner):
            raise _squatted(home)
        os.fchmod(fd, 0o700)
        who.give(fd)
    finally:
        os.close(fd)


def _squatted(home: Home) -> Exception:
    return unavailable(f"{home.sockets} belongs to somebody else. Remove it and try again.")
