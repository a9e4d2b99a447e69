"""Disk: a small file system in memory, to be filled to the last byte.

Mounting one needs to be root, with the right to mount: where that is not so, `Disk.refusal` says
why, and a story that needs a disk is skipped with these words.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


class Disk:
    """A tmpfs of so many megabytes."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        folder.mkdir()
        self.folder = folder
        self._ballast = folder / "ballast"
        done = _mount("-t", "tmpfs", "-o", f"size={megabytes}m,mode=0755", "tmpfs", str(folder))
        assert done.returncode == 0, done.stderr

    @staticmethod
    def refusal(folder: Path) -> str | None:
        """Say why no disk can be mounted here; None where it can."""
        if os.geteuid() != 0:
            return "only root may mount a small disk to fill up"
        done = _mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder))
        if done.returncode != 0:
            return f"no small disk can be mounted here: {done.stderr.strip()}"
        subprocess.run(["umount", str(folder)], check=True)
        return None

    def fill(self) -> None:
        """Take every byte that is left."""
        with self._ballast.open("wb", buffering=0) as file:
            for size in (2**20, 4096, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    continue

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)

    def unmount(self) -> None:
        self.free()
        subprocess.run(["umount", "--lazy", str(self.folder)], check=True)


def _mount(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["mount", *words], capture_output=True, text=True)
