"""The command: on a terminal it starts and ends cleanly; elsewhere it says what to do."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Generator
from contextlib import contextmanager, suppress

import pytest

from howdah.client.sync import SyncQueue
from tests.cli.support import environment, invoke, run
from tests.support.waiting import wait_until

# the alternate screen of full-screen programs
ENTER_SCREEN, LEAVE_SCREEN = b"\x1b[?1049h", b"\x1b[?1049l"


class Terminal:
    """A terminal of 80x24 with `howdah top` on it."""

    def __init__(self, process: subprocess.Popen[bytes], ours: int, theirs: int) -> None:
        self.process = process
        self.written = b""
        self._ours, self._theirs = ours, theirs
        os.set_blocking(ours, False)

    @property
    def settings(self) -> object:
        return termios.tcgetattr(self._theirs)

    def type(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def read_until(self, text: bytes) -> None:
        """Read the output until it contains this text."""

        def text_was_written() -> bool:
            ended = self.process.poll() is not None
            part = self._read()
            if text in self.written:
                return True
            assert part or not ended, self._tail()
            return False

        wait_until(text_was_written, self._tail, deadline=60, pause=0.02)

    def exit_code(self) -> int:
        """Wait for the end of the process and return its exit code; read the output meanwhile."""

        def ended() -> bool:
            returncode = self.process.poll()
            self._read()
            return returncode is not None

        wait_until(ended, "the process has ended", deadline=60, pause=0.02)
        return self.process.returncode

    def _tail(self) -> str:
        return repr(self.written[-2000:])

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
def test_it_ends_cleanly_and_restores_the_terminal(dsn: str, how: str) -> None:
    with SyncQueue(dsn) as queue:
        queue.enqueue("resize")
    with on_a_terminal("--dsn", dsn) as terminal:
        before = terminal.settings
        terminal.read_until(b"resize")
        assert ENTER_SCREEN in terminal.written
        assert terminal.settings != before
        if how.startswith("SIG"):
            terminal.process.send_signal(signal.Signals[how])
        else:
            terminal.type(b"q" if how == "q" else b"\x03")
        assert terminal.exit_code() == 0
        assert terminal.settings == before
        assert LEAVE_SCREEN in terminal.written
        assert b"Traceback" not in terminal.written


def test_read_only_is_shown_on_the_screen(dsn: str) -> None:
    with on_a_terminal("--read-only", "--dsn", dsn) as terminal:
        terminal.read_until(b"read-only")
        terminal.type(b"q")
        assert terminal.exit_code() == 0


@pytest.mark.parametrize(
    ("address", "code", "message"),
    [
        ("postgresql://nobody@127.0.0.1:1/none", 4, b"cannot reach"),
        ("empty", 5, b"run `howdah install`"),
    ],
)
def test_an_error_at_the_start_is_printed_without_a_traceback(
    empty_dsn: str, address: str, code: int, message: bytes
) -> None:
    with on_a_terminal("--dsn", empty_dsn if address == "empty" else address) as terminal:
        assert terminal.exit_code() == code
        assert message in terminal.written
        assert ENTER_SCREEN not in terminal.written
        assert b"Traceback" not in terminal.written


def test_without_a_terminal_it_points_to_stats_and_jobs(dsn: str) -> None:
    refused = invoke("top", "--dsn", dsn)
    assert refused.exit_code == 2
    assert "needs a terminal" in refused.stderr
    assert "`howdah stats`" in refused.stderr
    assert "`howdah jobs`" in refused.stderr
    assert refused.stdout == ""


def test_a_dumb_terminal_is_refused(dsn: str) -> None:
    with on_a_terminal("--dsn", dsn, TERM="dumb") as terminal:
        assert terminal.exit_code() == 2
        assert b"howdah stats" in terminal.written


def test_without_the_extra_it_says_in_one_line_how_to_install_it() -> None:
    script = (
        "import sys; sys.modules['textual'] = None; sys.argv = ['howdah', 'top']; "
        "from howdah.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment()
    )
    assert done.returncode == 2
    assert done.stderr == "error: `howdah top` needs one more package: pip install 'howdah[tui]'\n"


def test_other_commands_do_not_import_textual() -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-c"),
            "import sys, howdah.cli.commands; sys.exit('textual' in sys.modules)",
        ],
        env=environment(),
    )
    assert done.returncode == 0
    assert run("--version").returncode == 0
