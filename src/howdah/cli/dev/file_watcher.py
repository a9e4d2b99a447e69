"""File watcher: which Python files of a folder changed since the last check.

It compares the times and sizes of the files about once a second. In a folder with very many files
it checks less often, so that it uses only a small part of a core.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

CHECK_EVERY = 1.0  # seconds
PAUSE_FACTOR = 20  # the pause, in multiples of the time that a check took
SETTLE_TIME = 0.1  # seconds without another change, after which a change is complete
IGNORED_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages"})


class FileWatcher:
    """Knows the files of a folder as they were at the last check."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = self._scan()

    def step(self) -> list[Path]:
        """Return the files that were added, removed or changed since the last step, sorted."""
        now, before = self._scan(), self._files
        self._files = now
        return sorted(
            path for path in now.keys() | before.keys() if now.get(path) != before.get(path)
        )

    async def changed(self) -> list[Path]:
        """Wait for a change, then until no more follows."""
        all_changed: set[Path] = set()
        while True:
            began = time.monotonic()
            changed = await asyncio.to_thread(self.step)
            all_changed.update(changed)
            if all_changed and not changed:
                return sorted(all_changed)
            took = time.monotonic() - began
            await asyncio.sleep(
                SETTLE_TIME if all_changed else max(CHECK_EVERY, PAUSE_FACTOR * took)
            )

    def _scan(self) -> dict[Path, tuple[int, int]]:
        files: dict[Path, tuple[int, int]] = {}
        for folder, folders, names in os.walk(self._folder):
            if "pyvenv.cfg" in names:  # a virtual environment
                folders.clear()
                continue
            folders[:] = [
                name for name in folders if name not in IGNORED_FOLDERS and name[0] != "."
            ]
            for name in names:
                if name.endswith(".py"):
                    path = Path(folder, name)
                    try:
                        status = path.stat()
                    except OSError:
                        continue  # removed meanwhile
                    files[path] = (status.st_mtime_ns, status.st_size)
        return files
