"""Beat process: start beat_helper.py, and ping it.

The heartbeat's thread pings the helper all the time. If no ping comes for half of `silent_after`,
the helper beats for the worker. If the helper cannot be started, or dies, this is logged and
the thread beats alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress

from howdah.run import beat_helper
from howdah.run.process.child_process import own_folders
from howdah.safe_logging import log_named
from howdah.store import Store

_log = log_named("howdah.beat")


class BeatProcess:
    """A process that beats while this one cannot."""

    def __init__(
        self, store: Store, worker_id: str, *, every: float, silent_after: float, limit: float
    ) -> None:
        self._worker_id = worker_id
        self._popen: subprocess.Popen[bytes] | None = None
        settings = {
            "dsn": store.dsn,
            "pgbouncer": store.pooled,
            "worker_id": worker_id,
            "every": every,
            "silent_after": silent_after,
            "limit": limit,
            "folders": own_folders(),
        }
        try:
            if getattr(sys, "frozen", False):
                raise OSError("a frozen program has no interpreter to start")
            self._popen = subprocess.Popen(  # noqa: S603 - our own interpreter
                [sys.executable, "-I", "-S", str(beat_helper.__file__)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C goes to the worker only
            )
            os.write(self._stdin, json.dumps(settings).encode() + b"\n")
            for pipe in (self._popen.stdin, self._popen.stdout):
                assert pipe is not None
                os.set_blocking(pipe.fileno(), False)
        except Exception as error:  # the thread beats in any case
            self._give_up(error)

    def ping(self) -> None:
        """Tell the helper that threads of this process run."""
        if self._popen is not None:
            try:
                os.write(self._stdin, b".")
            except BlockingIOError:
                pass  # it has not read the last pings yet
            except OSError as error:
                self._give_up(error)

    def last_error(self) -> str:
        """Return the last error of the helper since the last call."""
        if self._popen is None:
            return "there is no helper"
        assert self._popen.stdout is not None
        try:
            output = os.read(self._popen.stdout.fileno(), 65536)
        except OSError:
            return ""
        return output.decode(errors="replace").strip().rpartition("\n")[2]

    def close(self) -> None:
        """End the helper."""
        popen, self._popen = self._popen, None
        if popen is not None:
            _end(popen)

    @property
    def _stdin(self) -> int:
        assert self._popen is not None
        assert self._popen.stdin is not None
        return self._popen.stdin.fileno()

    def _give_up(self, error: Exception) -> None:
        _log.warning(
            "beat.alone worker=%s error=%s: while a handler holds the GIL, no beats are sent",
            self._worker_id,
            error,
        )
        popen, self._popen = self._popen, None
        if popen is not None:
            _end(popen)


def _end(popen: subprocess.Popen[bytes]) -> None:
    """Kill the helper: it has nothing to save."""
    popen.kill()
    for pipe in (popen.stdin, popen.stdout):
        assert pipe is not None
        with suppress(OSError):
            pipe.close()
    popen.wait()
