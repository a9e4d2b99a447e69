"""howdah demo: everything it promises, read from the database, and nothing left behind."""

from __future__ import annotations

import re
import shutil
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.cli.support import run, started, until_true

pytestmark = pytest.mark.slow


def cleared(folder: Path) -> bool:
    """Whether nothing that has to do with a folder is left; the last to go is the reaper."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if any(str(folder) in word for word in (*process.cmdline(), process.cwd())):
                return False
    return True


@pytest.fixture
def folder() -> Path:
    """Where the demo makes its folder; short, as a socket goes there."""
    return Path(tempfile.mkdtemp(prefix="hwdemo-"))


def test_the_demo_shows_what_it_promises(folder: Path) -> None:
    # a DSN in the environment leads nowhere: a demo never touches a queue of the user's
    done = run("demo", TMPDIR=str(folder), HOWDAH_DSN="postgresql://localhost:1/users")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\x1b" not in done.stdout
    for pattern in (
        r"\$ +kill -9 (\d+)",
        r"recover +(\d+x )?transcode taken back from \d+",
        r"retry +fetch_rates after attempt 1: ConnectionError",
        r"fail +import_orders: ValueError",
        r"cancel +export_all: nobody waits",
        r"complete +(\d+x )?transcode on attempt 2",
        r"all +· +· +· +14 +1 +1",
    ):
        assert re.search(pattern, done.stdout), pattern
    assert done.stdout.count("✓") == 6
    assert "✗" not in done.stdout
    assert "howdah dev app:queue" in done.stdout
    assert list(folder.iterdir()) == []
    until_true(lambda: cleared(folder), "no process is left")
    folder.rmdir()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_clears_up(folder: Path, number: signal.Signals) -> None:
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
    until_true(lambda: cleared(folder), "no process is left")
    folder.rmdir()


def test_killed_it_takes_its_workers_and_its_server_along(folder: Path) -> None:
    with started("demo", TMPDIR=str(folder)) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if "running: " in line:
                break
        demo.kill()
        demo.wait()
    until_true(lambda: cleared(folder), "no process is left")
    shutil.rmtree(folder)
