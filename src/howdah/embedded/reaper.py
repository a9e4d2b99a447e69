"""Reaper: a small process that stops the server when nobody uses it any more.

It waits for the locks of user_locks.py. `kill -9` of the last user unlocks its file like any exit.
It is started before the server, so no server is without one; a process that joins a server without
a reaper starts another. While the server is kept up (`howdah pg start`), it waits for the end of
the server instead. It also limits the size of the log.

It runs for long, so it loads little: this package and the standard library. `BOOT` defines the
package `howdah` without running `howdah/__init__.py`, and leaves site-packages out.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

from howdah.embedded import log, postmaster, user_locks
from howdah.embedded.environment import environment
from howdah.embedded.home import Home, find_home
from howdah.embedded.locks import reaper_lock, server_lock, start_lock

STOP_DELAY = 1.0  # seconds, so that a series of commands does not start it each time
TRIM_LOG_EVERY = 60.0

DETACHED = '"$@" &'
BOOT = """
import sys, types
howdah = types.ModuleType("howdah")
howdah.__path__ = [sys.argv[1]]
sys.modules["howdah"] = howdah
from howdah.embedded.reaper import main
main()
"""


def ensure_reaper(home: Home) -> None:
    """Start a reaper unless there is one. The caller holds start.lock and a user lock."""
    with reaper_lock(home.path) as lock:
        if not lock.try_acquire():
            return
        log_fd = log.open_log(home.log)
        package = str(Path(__file__).parents[1])
        try:
            subprocess.run(  # noqa: S603  this interpreter, and paths as arguments
                [
                    *("/bin/sh", "-c", DETACHED, "sh"),
                    *(sys.executable, "-I", "-S", "-c", BOOT),
                    *(package, str(home.path), str(lock.fd), str(STOP_DELAY)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log_fd,
                env=environment(),
                cwd="/",
                pass_fds=(lock.fd,),
                start_new_session=True,
                check=True,
            )
        finally:
            os.close(log_fd)


def main() -> None:
    home, reaper_lock_fd, stop_delay = sys.argv[2:]
    _trim_log_regularly(find_home(Path(home)))
    watch(find_home(Path(home)), int(reaper_lock_fd), float(stop_delay))


def watch(home: Home, reaper_lock_fd: int, stop_delay: float) -> None:
    """Wait until no process uses the server, then stop it and end."""
    while True:
        user_locks.wait_until_unused(home)
        time.sleep(stop_delay)
        with start_lock(home.path):
            if user_locks.held(home):
                continue
            home = find_home(home.path)  # the first start may have moved the cluster
            if not (home.keep.exists() and postmaster.is_running(home)):
                user_locks.remove_stale(home)
                postmaster.stop(home)
                # while we hold start.lock, so that the next process does not take us for alive
                os.close(reaper_lock_fd)
                return
        with server_lock(home.path) as server:
            server.acquire(shared=True)


def _trim_log_regularly(home: Home) -> None:
    def trim(number: int, frame: FrameType | None) -> None:
        log.trim(home.log)

    signal.signal(signal.SIGALRM, trim)
    signal.setitimer(signal.ITIMER_REAL, TRIM_LOG_EVERY, TRIM_LOG_EVERY)
