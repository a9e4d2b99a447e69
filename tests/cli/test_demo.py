"""howdah demo: it shows all that it promises, and leaves no file and no process."""

from __future__ import annotations

import re
import shutil
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.cli.support import run, started
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow


def is_unused(folder: Path) -> bool:
    """Tell whether no process uses the folder any more; the reaper ends last."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if any(str(folder) in word for word in (*process.cmdline(), process.cwd())):
                return False
    return True


@pytest.fixture
def folder() -> Path:
    """Where the demo makes its folder; short, because a socket is in it."""
    return Path(tempfile.mkdtemp(prefix="hwdemo-"))


def test_the_demo_shows_every_promise(folder: Path) -> None:
    # the demo must not use the DSN of the environment: it may be a real queue
    done = run("demo", TMPDIR=str(folder), HOWDAH_DSN="postgresql://localhost:1/users")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\x1b" not in done.stdout
    for pattern in (
        r"\$ +kill -9 (\d+)",
        r"recover +(\d+x )?transcode recovered from \d+",
        r"retry +fetch_rates after attempt 1: ConnectionError",
        r"fail +import_orders: ValueError",
        r"cancel +export_all: it is not needed",
        r"complete +(\d+x )?transcode on attempt 2",
        r"all +· +· +· +14 +1 +1",
    ):
        assert re.search(pattern, done.stdout), pattern
    assert done.stdout.count("✓") == 6
    assert "✗" not in done.stdout
    assert "howdah dev app:queue" in done.stdout
    assert list(folder.iterdir()) == []
    wait_until(lambda: is_unused(folder), "no process is left")
    folder.rmdir()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_cleans_up(folder: Path, number: signal.Signals) -> None:
    with started("demo", TMPDIR=str(folder)) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if "running: " in line:
                break
        demo.send_signal(number)
        assert demo.wait(30) == 130
        assert demo.stderr is not None
        assert demo.stderr.read() == ""
    assert list(folder.iterdir()) == []
    wait_until(lambda: is_unused(folder), "no process is left")
    folder.rmdir()


def test_workers_and_server_end_with_a_killed_demo(folder: Path) -> None:
    with started("demo", TMPDIR=str(folder)) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if "running: " in line:
                break
        demo.kill()
        demo.wait()
    wait_until(lambda: is_unused(folder), "no process is left")
    shutil.rmtree(folder)
