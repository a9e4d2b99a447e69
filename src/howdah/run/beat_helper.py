"""Beat helper: the program of a small process that beats while a handler holds the GIL.

Comes after  beat_process.py, which starts it and pings it every few seconds

It imports nothing of howdah until it has to beat, and never the user's program. It beats only while
the worker's process exists and is not stopped, and no longer than its limit: a worker that hangs
for ever must be recovered. It ends with its worker, because its stdin closes then.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from typing import Any

STDIN = 0


class Helper:
    """Waits for pings of the worker; if none come, checks whether to beat for it."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._worker = os.getppid()
        self._pinged = time.monotonic()
        self._failed = False
        self._runner: Any = None
        self._connection: Any = None

    def step(self) -> bool:
        """Wait for a ping, or beat if none came for too long; False if the worker is gone."""
        every = self._settings["every"]
        if select.select([STDIN], [], [], every)[0]:
            if not os.read(STDIN, 65536):
                return False
            self._pinged = time.monotonic()
            self._disconnect()
            return True
        if os.getppid() != self._worker:
            return False
        silent = time.monotonic() - self._pinged
        due = self._settings["silent_after"] / 2 <= silent <= self._settings["limit"]
        if due and is_running_process(self._worker):
            self._beat(silent)
        return True

    def _beat(self, silent: float) -> None:
        import asyncio

        if self._runner is None:
            folders = self._settings["folders"]
            sys.path.extend(folder for folder in folders if folder not in sys.path)
            self._runner = asyncio.Runner()
        try:
            self._runner.run(self._beat_once(silent))
        except Exception as error:
            if not self._failed:  # print only the first of several errors in a row
                print(" ".join(f"{type(error).__name__}: {error}".split()), flush=True)
            self._failed = True
            self._disconnect()
        else:
            self._failed = False

    async def _beat_once(self, silent: float) -> None:
        import asyncio
        from datetime import timedelta

        from howdah.store import Store
        from howdah.store import run as store_run

        settings = self._settings
        async with asyncio.timeout(max(settings["every"] * 2, 2.0)):
            if self._connection is None:
                store = Store(settings["dsn"], pgbouncer=settings["pgbouncer"])
                self._connection = await store.connect()
            await store_run.beat_for_another(
                self._connection,
                settings["worker_id"],
                timedelta(seconds=settings["silent_after"]),
                round(silent, 1),
            )

    def _disconnect(self) -> None:
        if self._connection is not None:
            import asyncio

            self._connection.terminate()
            self._connection = None
            self._runner.run(asyncio.sleep(0))  # the loop must run once to close it


def is_running_process(pid: int) -> bool:
    """Whether a process exists and is not stopped; False if that cannot be known."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state = file.read().rpartition(b")")[2].split()[0].decode()
    except OSError:  # no such file on macOS
        import subprocess

        try:
            command = ("ps", "-o", "stat=", "-p", str(pid))
            ps = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)  # noqa: S603
        except (OSError, subprocess.SubprocessError):
            return False
        state = ps.stdout.strip()[:1]
    return state != "" and state not in "TtZXx"


def main() -> None:
    """Read the settings, and run until the worker is gone."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends only with its worker
    settings = b""
    while not settings.endswith(b"\n"):
        if not (part := os.read(STDIN, 1)):
            return
        settings += part
    helper = Helper(json.loads(settings))
    while helper.step():
        pass


if __name__ == "__main__":
    main()
