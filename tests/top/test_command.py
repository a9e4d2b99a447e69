"""The command: on a terminal it opens and leaves cleanly, elsewhere it says what to do."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

import pytest

from howdah.client.sync import SyncQueue
from tests.cli.support import environment, invoke, run

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"  # the other screen that full-screen programs use


class Terminal:
    """A terminal of 80x24 with `howdah top` on it."""

    def __init__(self, process: subprocess.Popen[bytes], ours: int, theirs: int) -> None:
        self.process = process
        self.written = b""
        self._ours, self._theirs = ours, theirs

    @property
    def settings(self) -> object:
        return termios.tcgetattr(self._theirs)

    def type(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def until(self, part: bytes) -> None:
        """Read what it writes until this is among it."""
        deadline = time.monotonic() + 60
        os.set_blocking(self._ours, False)
        while part not in self.written:
            assert time.monotonic() < deadline, self.written[-2000:]
            assert self.process.poll() is None or self._read(), self.written[-2000:]
            self._read()
            time.sleep(0.02)

    def left(self) -> int:
        """Wait for its end, as a terminal does: reading; returns the exit code."""
        deadline = time.monotonic() + 60
        os.set_blocking(self._ours, False)
        while self.process.poll() is None:
            assert time.monotonic() < deadline, "it never left"
            self._read()
            time.sleep(0.02)
        self._read()
        return self.process.returncode

    def _read(self) -> bytes:
        part = b""
        with suppress(BlockingIOError, OSError):
            part = os.read(self._ours, 1 << 20)
        self.written += part
        return part


@contextmanager
def on_a_terminal(*arguments: str, **more: str) -> Generator[Terminal]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    env = {k: v for k, v in environment(**more).items() if k not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, "-m", "howdah", "top", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=env,
        start_new_session=True,
    )
    try:
        yield Terminal(process, ours, theirs)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize("how", ["q", "ctrl-c", "SIGINT", "SIGTERM", "SIGHUP"])
def test_it_leaves_cleanly_with_the_terminal_as_it_was(dsn: str, how: str) -> None:
    with SyncQueue(dsn) as queue:
        queue.enqueue("resize")
    with on_a_terminal("--dsn", dsn) as terminal:
        before = terminal.settings
        terminal.until(b"resize")
        assert ENTER in terminal.written
        assert terminal.settings != before
        if how.startswith("SIG"):
            terminal.process.send_signal(signal.Signals[how])
        else:
            terminal.type(b"q" if how == "q" else b"\x03")
        assert terminal.left() == 0
        assert terminal.settings == before
        assert LEAVE in terminal.written
        assert b"Traceback" not in terminal.written


def test_read_only_says_so(dsn: str) -> None:
    with on_a_terminal("--read-only", "--dsn", dsn) as terminal:
        terminal.until(b"read-only")
        terminal.type(b"q")
        assert terminal.left() == 0


@pytest.mark.parametrize(
    ("at", "code", "said"),
    [
        ("postgresql://nobody@127.0.0.1:1/none", 4, b"cannot reach"),
        ("empty", 5, b"run `howdah install`"),
    ],
)
def test_what_is_wrong_from_the_beginning_is_one_line(
    empty_dsn: str, at: str, code: int, said: bytes
) -> None:
    with on_a_terminal("--dsn", empty_dsn if at == "empty" else at) as terminal:
        assert terminal.left() == code
        assert said in terminal.written
        assert ENTER not in terminal.written
        assert b"Traceback" not in terminal.written


def test_without_a_terminal_it_points_to_stats_and_jobs(dsn: str) -> None:
    refused = invoke("top", "--dsn", dsn)
    assert refused.exit_code == 2
    assert "no terminal" in refused.stderr
    assert "`howdah stats`" in refused.stderr
    assert "`howdah jobs`" in refused.stderr
    assert refused.stdout == ""


def test_a_dumb_terminal_is_none(dsn: str) -> None:
    with on_a_terminal("--dsn", dsn, TERM="dumb") as terminal:
        assert terminal.left() == 2
        assert b"howdah stats" in terminal.written


def test_without_the_extra_it_says_in_one_line_how_to_install_it() -> None:
    forbidden = (
        "import sys; sys.modules['textual'] = None; sys.argv = ['howdah', 'top']; "
        "from howdah.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", forbidden], capture_output=True, text=True, env=environment()
    )
    assert done.returncode == 2
    assert done.stderr == "error: `howdah top` needs one more package: pip install 'howdah[tui]'\n"


def test_no_other_command_pays_for_textual() -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-c"),
            "import sys, howdah.cli.commands; sys.exit('textual' in sys.modules)",
        ],
        env=environment(),
    )
    assert done.returncode == 0
    assert run("--version").returncode == 0
