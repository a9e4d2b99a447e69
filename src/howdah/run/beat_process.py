"""Beat process: the worker's end of beat_helper.py.

The heartbeat's thread gives a sign at every turn. A helper that hears nothing for half of
`silent_after` beats in the worker's place. Where it cannot be started, or dies, the
thread beats alone, and the log says so.
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
    """A process that beats when this one cannot."""

    def __init__(
        self, store: Store, worker_id: str, *, every: float, silent_after: float, limit: float
    ) -> None:
        self._worker_id = worker_id
        self._popen: subprocess.Popen[bytes] | None = None
        about = {
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
                start_new_session=True,  # a Ctrl-C is for the worker
            )
            os.write(self._stdin, json.dumps(about).encode() + b"\n")
            for pipe in (self._popen.stdin, self._popen.stdout):
                assert pipe is not None
                os.set_blocking(pipe.fileno(), False)
        except Exception as error:  # whatever it is, the thread beats
            self._give_up(error)

    def tell(self) -> None:
        """Say that threads of this process run."""
        if self._popen is not None:
            try:
                os.write(self._stdin, b".")
            except BlockingIOError:
                pass  # it has not yet read what was said before
            except OSError as error:
                self._give_up(error)

    def said(self) -> str:
        """Return what went wrong in it since this was asked last."""
        if self._popen is None:
            return "there is no helper"
        assert self._popen.stdout is not None
        try:
            told = os.read(self._popen.stdout.fileno(), 65536)
        except OSError:
            return ""
        return told.decode(errors="replace").strip().rpartition("\n")[2]

    def close(self) -> None:
        """End it."""
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
            "beat.alone worker=%s error=%s: while a handler holds the GIL, nobody beats",
            self._worker_id,
            error,
        )
        popen, self._popen = self._popen, None
        if popen is not None:
            _end(popen)


def _end(popen: subprocess.Popen[bytes]) -> None:
    """Kill it: there is nothing that it would have to save."""
    popen.kill()
    for pipe in (popen.stdin, popen.stdout):
        assert pipe is not None
        with suppress(OSError):
            pipe.close()
    popen.wait()
