"""Real worker processes for stories."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


@contextmanager
def worker_process(dsn: str, app: str, *options: str) -> Generator[subprocess.Popen[bytes]]:
    """Run `howdah worker APP` as a process of its own; killed at the latest when the story ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "howdah", "worker", app, *options],
        cwd=ROOT,
        env={**os.environ, "HOWDAH_DSN": dsn},
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
