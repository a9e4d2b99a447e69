"""Processes: `howdah worker` as a process of its own."""

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
    """Run `howdah worker APP` as a process; it is killed at the end of the block."""
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
