"""Watch: which Python files of a folder changed since the last time.

Looks at the times and sizes of the files, about once a second; in a folder with very many files
less often, so that it never takes more than a small part of a core.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

EVERY = 1.0  # seconds
REST = 20  # times as long as a look took
SETTLED = 0.1  # seconds without another change, after which a change is whole
NOT_OURS = frozenset({"__pycache__", "node_modules", "site-packages"})


class Watch:
    """Knows how the files of a folder were when it looked last."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen = self._look()

    def step(self) -> list[Path]:
        """Return what came, went or changed since the last step, in order."""
        now, before = self._look(), self._seen
        self._seen = now
        return sorted(
            path for path in now.keys() | before.keys() if now.get(path) != before.get(path)
        )

    async def changed(self) -> list[Path]:
        """Wait until something changed, and until that is over."""
        found: set[Path] = set()
        while True:
            began = time.monotonic()
            changed = await asyncio.to_thread(self.step)
            found.update(changed)
            if found and not changed:
                return sorted(found)
            took = time.monotonic() - began
            await asyncio.sleep(SETTLED if found else max(EVERY, REST * took))

    def _look(self) -> dict[Path, tuple[int, int]]:
        found: dict[Path, tuple[int, int]] = {}
        for folder, folders, files in os.walk(self._folder):
            if "pyvenv.cfg" in files:  # an environment, not the user's own code
                folders.clear()
                continue
            folders[:] = [one for one in folders if one not in NOT_OURS and one[0] != "."]
            for name in files:
                if name.endswith(".py"):
                    path = Path(folder, name)
                    try:
                        told = path.stat()
                    except OSError:
                        continue  # gone while we looked
                    found[path] = (told.st_mtime_ns, told.st_size)
        return found
