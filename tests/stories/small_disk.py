"""Small disk: a file system in memory that a story can fill completely.

Only root can mount one, and only with the right to mount. Otherwise `SmallDisk.refusal` says why,
and the stories that need a disk are skipped with that reason.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


class SmallDisk:
    """A tmpfs of so many megabytes."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        folder.mkdir()
        self.folder = folder
        self._filler = folder / "filler"
        mounted = _mount("-t", "tmpfs", "-o", f"size={megabytes}m,mode=0755", "tmpfs", str(folder))
        assert mounted.returncode == 0, mounted.stderr

    @staticmethod
    def refusal(folder: Path) -> str | None:
        """Return why no disk can be mounted here; None if it can be."""
        if os.geteuid() != 0:
            return "only root may mount a small disk to fill up"
        mounted = _mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder))
        if mounted.returncode != 0:
            return f"no small disk can be mounted here: {mounted.stderr.strip()}"
        subprocess.run(["umount", str(folder)], check=True)
        return None

    def fill(self) -> None:
        """Write until no byte is free."""
        with self._filler.open("wb", buffering=0) as file:
            for size in (2**20, 4096, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    continue

    def free(self) -> None:
        self._filler.unlink(missing_ok=True)

    def unmount(self) -> None:
        self.free()
        subprocess.run(["umount", "--lazy", str(self.folder)], check=True)


def _mount(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["mount", *options], capture_output=True, text=True)
