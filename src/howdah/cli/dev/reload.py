"""Reload: the worker as a child process that starts again when the code changes.

Comes after  watch.py

A worker that ended by itself, because its module has a mistake or because somebody drained it, is
not started again until something changes: nothing else would make it end otherwise.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from howdah.cli.dev.watch import Watch
from howdah.observe.wording import some

GRACE = 2.0  # seconds that running jobs get to end; then they are handed back and run again
HURRY = 3.0  # seconds that the worker gets to hand them back


class Reload:
    """Keeps one worker at work on the code as it is now."""

    def __init__(
        self,
        target: str,
        shown: str,
        *,
        dsn: str | None,
        options: Sequence[str],
        folder: Path,
        say: Callable[[str], None],
    ) -> None:
        grace = ("--grace", f"{GRACE:g}s")
        self._command = ("-P", "-m", "howdah.cli.dev.child", target, shown, *options, *grace)
        self._dsn = dsn
        self._folder = folder
        self._say = say

    async def run(self) -> None:
        """Work until cancelled."""
        watch = Watch(self._folder)
        while True:
            child = await self._start()
            try:
                async with asyncio.TaskGroup() as tasks:
                    gone = tasks.create_task(self._tell_when_gone(child))
                    changed = await watch.changed()
                    gone.cancel()
                names = some(str(path.relative_to(self._folder)) for path in changed)
                self._say(f"{names} changed: the worker starts again")
            finally:
                await _end(child)

    async def _start(self) -> Process:
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        if self._dsn is not None:
            environment["HOWDAH_DSN"] = self._dsn  # where nobody else can read its password
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *self._command,
            stdin=PIPE,
            env=environment,
            cwd=self._folder,
            start_new_session=True,  # Ctrl-C is for the parent, which ends it in order
        )

    async def _tell_when_gone(self, child: Process) -> None:
        await child.wait()
        self._say("the worker has ended; it starts again when a .py file changes")


async def _end(child: Process) -> None:
    """End a worker: it lets jobs end for a moment, hands back the rest, and goes."""
    for send, patience in (
        (child.terminate, GRACE + 1),
        (child.terminate, HURRY),
        (child.kill, HURRY),
    ):
        if child.returncode is not None:
            return
        with suppress(ProcessLookupError):
            send()
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await child.wait()
