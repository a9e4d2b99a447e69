"""Beat helper: a small process that beats for its worker while a handler holds the GIL.

Comes after  beat_process.py, which starts it and tells it every few seconds that threads run

It imports nothing of howdah until it has to beat, and never the user's program. It beats only while
the worker's process lives and is not stopped, and not for longer than it was told: a worker that
hangs for ever is given up all the same. It ends with its worker: its stdin closes then.
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
    """Waits for words of the worker; where none come, looks whether it may beat for it."""

    def __init__(self, about: dict[str, Any]) -> None:
        self._about = about
        self._worker = os.getppid()
        self._heard = time.monotonic()
        self._failed = False
        self._runner: Any = None
        self._connection: Any = None

    def step(self) -> bool:
        """Wait for a word, or beat if none came for too long; False when the worker is gone."""
        every = self._about["every"]
        if select.select([STDIN], [], [], every)[0]:
            if not os.read(STDIN, 65536):
                return False
            self._heard = time.monotonic()
            self._disconnect()
            return True
        if os.getppid() != self._worker:
            return False
        silent = time.monotonic() - self._heard
        due = self._about["silent_after"] / 2 <= silent <= self._about["limit"]
        if due and is_going(self._worker):
            self._beat(silent)
        return True

    def _beat(self, silent: float) -> None:
        import asyncio

        if self._runner is None:
            sys.path.extend(one for one in self._about["folders"] if one not in sys.path)
            self._runner = asyncio.Runner()
        try:
            self._runner.run(self._beat_once(silent))
        except Exception as error:
            if not self._failed:  # once in a row: the worker reads it when it can
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

        about = self._about
        async with asyncio.timeout(max(about["every"] * 2, 2.0)):
            if self._connection is None:
                self._connection = await Store(about["dsn"], pgbouncer=about["pgbouncer"]).connect()
            await store_run.beat_for_another(
                self._connection,
                about["worker_id"],
                timedelta(seconds=about["silent_after"]),
                round(silent, 1),
            )

    def _disconnect(self) -> None:
        if self._connection is not None:
            import asyncio

            self._connection.terminate()
            self._connection = None
            self._runner.run(asyncio.sleep(0))  # without a turn of the loop it stays open


def is_going(pid: int) -> bool:
    """Whether a process exists and is not stopped; where nobody can tell, it is not."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state = file.read().rpartition(b")")[2].split()[0].decode()
    except OSError:  # no such file on macOS
        import subprocess

        try:
            asked = ("ps", "-o", "stat=", "-p", str(pid))
            told = subprocess.run(asked, capture_output=True, text=True, timeout=5, check=False)  # noqa: S603
        except (OSError, subprocess.SubprocessError):
            return False
        state = told.stdout.strip()[:1]
    return state != "" and state not in "TtZXx"


def main() -> None:
    """Help until the worker is gone."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends with its worker, and not before
    first = b""
    while not first.endswith(b"\n"):
        if not (part := os.read(STDIN, 1)):
            return
        first += part
    helper = Helper(json.loads(first))
    while helper.step():
        pass


if __name__ == "__main__":
    main()
