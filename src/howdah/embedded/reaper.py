"""Reaper: a small process that stops the server once nobody uses it any more.

Comes after   leases.py, whose locks it waits for, asleep in the kernel

It belongs to no user and needs no goodbye: kill -9 of the last one lets its lease go like any
exit. It is started before the server is, so there is no server without one; whoever joins
a server whose reaper was killed starts another. While the server is kept (`howdah pg start`)
it waits for the server's end instead. Now and then it cuts the log short.

It runs for long, so it carries little: this package and the standard library. `BOOT` names
`howdah` without running `howdah/__init__.py`, and leaves site-packages out.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

from howdah.embedded import leases, log, postmaster
from howdah.embedded.environment import environment
from howdah.embedded.home import Home, find_home
from howdah.embedded.locks import reaper_lock, server_lock, starting

LINGER = 1.0  # one command after another should not start the server anew each time
LOG_IS_LOOKED_AT_EVERY = 60.0

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
    """Start a reaper unless there is one. Asks for start.lock, and a lease held by us."""
    with reaper_lock(home.path) as lock:
        if not lock.try_acquire():
            return
        complaints = log.open_log(home.log)
        package = str(Path(__file__).parents[1])
        try:
            subprocess.run(  # noqa: S603  this interpreter, and paths as arguments
                [
                    *("/bin/sh", "-c", DETACHED, "sh"),
                    *(sys.executable, "-I", "-S", "-c", BOOT),
                    *(package, str(home.path), str(lock.fd), str(LINGER)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=complaints,
                env=environment(),
                cwd="/",
                pass_fds=(lock.fd,),
                start_new_session=True,
                check=True,
            )
        finally:
            os.close(complaints)


def main() -> None:
    home, reaper_lock_fd, linger = sys.argv[2:]
    _bound_the_log(find_home(Path(home)))
    watch(find_home(Path(home)), int(reaper_lock_fd), float(linger))


def watch(home: Home, reaper_lock_fd: int, linger: float) -> None:
    """Wait for the last user to go, then stop the server and end."""
    while True:
        leases.wait_for_nobody(home)
        time.sleep(linger)
        with starting(home.path):
            if leases.held(home):
                continue
            home = find_home(home.path)  # the first start may have put the cluster elsewhere
            if not (home.keep.exists() and postmaster.is_there(home)):
                leases.sweep(home)
                postmaster.stop(home)
                # before start.lock goes: the next who comes must not mistake us for alive
                os.close(reaper_lock_fd)
                return
        with server_lock(home.path) as server:
            server.acquire(shared=True)


def _bound_the_log(home: Home) -> None:
    def trim(number: int, frame: FrameType | None) -> None:
        log.trim(home.log)

    signal.signal(signal.SIGALRM, trim)
    signal.setitimer(signal.ITIMER_REAL, LOG_IS_LOOKED_AT_EVERY, LOG_IS_LOOKED_AT_EVERY)
