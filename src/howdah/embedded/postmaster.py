"""Postmaster: finds the running server of a cluster, stops it, removes the files of a dead one.

A pid alone proves nothing: it may belong to another program by now. So two things are checked.
server.lock tells that some process of a server is alive. The pid file tells which one, and is
trusted only if that process is a postgres on this cluster.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from howdah.embedded.files import rewrite_regular
from howdah.embedded.home import SOCKET_NAME, Home
from howdah.embedded.locks import is_held

PROC = Path("/proc")
UNUSED_PID = 2**31 - 2  # larger than any pid
NAMES = ("postgres", "postmaster")
FAST_SHUTDOWN = 60.0  # seconds; then an immediate shutdown, after which nothing committed is lost
IMMEDIATE_SHUTDOWN = 30.0
POLL_INTERVAL = 0.02


def running_pid(home: Home) -> int | None:
    """Return the pid of the server of this cluster; None if it does not run."""
    pid = _written_pid(home.pgdata / "postmaster.pid")
    return pid if pid and _serves(pid, home.pgdata) else None


def is_running(home: Home) -> bool:
    """Tell whether a server, or a process that outlived its server, is alive."""
    return is_held(home.path / "server.lock") or running_pid(home) is not None


def stop(home: Home) -> bool:
    """Stop the server and wait until it has ended. The caller holds start.lock."""
    was_running = is_running(home)
    for request, timeout in (
        (signal.SIGINT, FAST_SHUTDOWN),
        (signal.SIGQUIT, IMMEDIATE_SHUTDOWN),
    ):
        if _end(home, request, timeout):
            break
    if home.sockets.parent != home.base:
        with contextlib.suppress(OSError):
            home.sockets.rmdir()
    return was_running


def clear_stale_files(home: Home) -> None:
    """Make a dead server's lock files harmless. The caller holds server.lock.

    PostgreSQL does that by itself, unless the pid in them is alive. We hold server.lock, so that
    pid belongs to another program now, or to a zombie. The pid file is not removed but gets an
    unused pid: the rest of it lets PostgreSQL find processes that outlived a server which was
    started by hand and holds no lock of ours.
    """
    if running_pid(home) is not None:
        return
    file = home.pgdata / "postmaster.pid"
    if _written_pid(file) is None:
        file.unlink(missing_ok=True)
    else:
        _, newline, rest = file.read_text().partition("\n")
        rewrite_regular(file, f"{UNUSED_PID}{newline}{rest}")
    (home.sockets / f"{SOCKET_NAME}.lock").unlink(missing_ok=True)
    home.socket.unlink(missing_ok=True)


def is_alive(pid: int) -> bool:
    """Tell whether the process runs; a zombie does not.

    The command line does not tell that: it is empty for a moment while a program is loaded.
    """
    if not (PROC / "self").exists():
        return bool(_arguments_without_proc(pid))
    try:
        status = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")


def _end(home: Home, request: signal.Signals, timeout: float) -> bool:
    asked: int | None = None
    until = time.monotonic() + timeout
    while is_running(home):
        pid = running_pid(home)  # None for a moment after its starter was killed
        if pid is not None and pid != asked:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, request)
            asked = pid
        if time.monotonic() > until:
            return False
        time.sleep(POLL_INTERVAL)
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
        return [os.fsdecode(argument) for argument in raw.rstrip(b"\0").split(b"\0") if argument]
    return _arguments_without_proc(pid)


def _arguments_without_proc(pid: int) -> list[str]:
    """Ask `ps`, which joins arguments with spaces: returns the program and what follows -D."""
    done = subprocess.run(  # noqa: S603  a pid is all that varies
        ["/bin/ps", "-ww", "-p", str(pid), "-o", "state=,command="],
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    state, _, command = os.fsdecode(done.stdout).strip().partition(" ")
    if not command or state.startswith("Z"):
        return []
    program, option, rest = command.strip().partition(" -D ")
    if not option:
        return [command.strip()]
    # we pass -D first and -c next; the name of a folder may contain spaces
    return [program, rest.partition(" -c ")[0]]
