"""Postmaster: find the living server of a cluster, end it, clear away what a dead one left.

Comes after   launch.py, which gave server.lock to the server it started

Two witnesses, because a pid alone proves nothing: it may belong to another program by now.
server.lock tells that some process of a server is alive; the pid file tells which one, and
is believed only if that process is a postgres at work on this very cluster.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from howdah.embedded.files import rewrite_own
from howdah.embedded.home import SOCKET_NAME, Home
from howdah.embedded.locks import is_held

PROC = Path("/proc")
NOBODYS_PID = 2**31 - 2  # above every limit of every kernel
NAMES = ("postgres", "postmaster")
FAST_SHUTDOWN = 60.0  # then immediate: the next start recovers, nothing committed is lost
IMMEDIATE_SHUTDOWN = 30.0
TICK = 0.02


def living(home: Home) -> int | None:
    """Tell the pid of the server of this cluster, if it is alive."""
    pid = _written_pid(home.pgdata / "postmaster.pid")
    return pid if pid and _serves(pid, home.pgdata) else None


def is_there(home: Home) -> bool:
    """Tell whether a server, or a process a dead server left behind, is alive."""
    return is_held(home.path / "server.lock") or living(home) is not None


def stop(home: Home) -> bool:
    """End the server, politely first, and wait until it has gone. Asks for start.lock."""
    was_there = is_there(home)
    for request, patience in (
        (signal.SIGINT, FAST_SHUTDOWN),
        (signal.SIGQUIT, IMMEDIATE_SHUTDOWN),
    ):
        if _end(home, request, patience):
            break
    if home.sockets.parent != home.room:
        with contextlib.suppress(OSError):
            home.sockets.rmdir()
    return was_there


def clear_stale_files(home: Home) -> None:
    """Take a dead server's lock files out of the way. Asks for server.lock, held by us.

    PostgreSQL does so by itself, unless the pid in them is alive. We hold server.lock, so it
    is a stranger's by now, or a zombie's. The pid file is not removed but given a pid nobody
    has: the rest of it lets PostgreSQL find processes that outlived a server which was started
    by hand and holds no lock of ours.
    """
    if living(home) is not None:
        return
    file = home.pgdata / "postmaster.pid"
    if _written_pid(file) is None:
        file.unlink(missing_ok=True)
    else:
        _, newline, rest = file.read_text().partition("\n")
        rewrite_own(file, f"{NOBODYS_PID}{newline}{rest}")
    (home.sockets / f"{SOCKET_NAME}.lock").unlink(missing_ok=True)
    home.socket.unlink(missing_ok=True)


def is_alive(pid: int) -> bool:
    """Tell whether the process runs; one that ended but was not waited for does not.

    Its command line would not tell: that is empty for a moment while a program is loaded.
    """
    if not (PROC / "self").exists():
        return bool(_arguments_without_proc(pid))
    try:
        told = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return False
    return told.rpartition(")")[2].split()[0] not in ("Z", "X")


def _end(home: Home, request: signal.Signals, patience: float) -> bool:
    asked: int | None = None
    until = time.monotonic() + patience
    while is_there(home):
        pid = living(home)  # not there yet if its starter was killed a moment ago
        if pid is not None and pid != asked:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, request)
            asked = pid
        if time.monotonic() > until:
            return False
        time.sleep(TICK)
    return True


def _written_pid(path: Path) -> int | None:
    try:
        return int(path.read_text(errors="replace").partition("\n")[0])
    except (OSError, ValueError):
        return None


def _serves(pid: int, pgdata: Path) -> bool:
    program, *arguments = _arguments(pid) or [""]
    if Path(program).name not in NAMES:
        return False
    folders = [argument.removeprefix("-D") for argument in arguments]
    return any(_same(folder, pgdata) for folder in [*folders, PROC / str(pid) / "cwd"] if folder)


def _same(folder: str | Path, pgdata: Path) -> bool:
    try:
        return os.path.samefile(folder, pgdata)
    except OSError:
        return False


def _arguments(pid: int) -> list[str]:
    if (PROC / "self").exists():
        try:
            raw = (PROC / str(pid) / "cmdline").read_bytes()
        except OSError:
            return []
        return [os.fsdecode(word) for word in raw.rstrip(b"\0").split(b"\0") if word]
    return _arguments_without_proc(pid)


def _arguments_without_proc(pid: int) -> list[str]:
    """Ask `ps`, which joins words with spaces: the program, then all after the first -D."""
    done = subprocess.run(  # noqa: S603  a pid is all that varies
        ["/bin/ps", "-ww", "-p", str(pid), "-o", "state=,command="],
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    state, _, command = os.fsdecode(done.stdout).strip().partition(" ")
    if not command or state.startswith("Z"):
        return []
    program, found, rest = command.strip().partition(" -D ")
    if not found:
        return [command.strip()]
    # -D is the first option we give and -c the next; a folder name may hold spaces
    return [program, rest.partition(" -c ")[0]]
