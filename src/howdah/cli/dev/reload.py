"""Reload: runs the worker as a child process and restarts it when the code changes.

A worker that ended by itself, after an import error or a drain, is started again only when a
file changes: until then it would end in the same way.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from howdah.cli.dev.file_watcher import FileWatcher
from howdah.text.wording import some

GRACE = 2.0  # seconds for running jobs to end; then they are released and run again
RELEASE_TIME = 3.0  # seconds for the worker to release them


class ReloadingWorker:
    """Keeps one worker running on the current code."""

    def __init__(
        self,
        target: str,
        shown_dsn: str,
        *,
        dsn: str | None,
        options: Sequence[str],
        folder: Path,
        show: Callable[[str], None],
    ) -> None:
        grace = ("--grace", f"{GRACE:g}s")
        self._command = ("-P", "-m", "howdah.cli.dev.child", target, shown_dsn, *options, *grace)
        self._dsn = dsn
        self._folder = folder
        self._show = show

    async def run(self) -> None:
        """Run until cancelled."""
        watcher = FileWatcher(self._folder)
        while True:
            child = await self._start()
            try:
                async with asyncio.TaskGroup() as tasks:
                    ended = tasks.create_task(self._report_end(child))
                    changed = await watcher.changed()
                    ended.cancel()
                names = some(str(path.relative_to(self._folder)) for path in changed)
                self._show(f"{names} changed: the worker restarts")
            finally:
                await _stop(child)

    async def _start(self) -> Process:
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        if self._dsn is not None:
            environment["HOWDAH_DSN"] = self._dsn  # not an argument: other users can read those
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *self._command,
            stdin=PIPE,
            env=environment,
            cwd=self._folder,
            start_new_session=True,  # Ctrl-C goes to the parent, which stops the child
        )

    async def _report_end(self, child: Process) -> None:
        await child.wait()
        self._show("the worker has ended; it restarts when a .py file changes")


async def _stop(child: Process) -> None:
    """Stop a worker: its jobs may end within GRACE, then it releases them, then it is killed."""
    for send_signal, timeout in (
        (child.terminate, GRACE + 1),
        (child.terminate, RELEASE_TIME),
        (child.kill, RELEASE_TIME),
    ):
        if child.returncode is not None:
            return
        with suppress(ProcessLookupError):
            send_signal()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await child.wait()
