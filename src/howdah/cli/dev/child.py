"""Child: `howdah worker` as a process that ends with its parent.

Its stdin is a pipe from the parent. The pipe closes when the parent ends, for whatever reason,
and then the worker stops. The pipe is read without `sys.stdin`: a thread that waits in it holds
its lock, and Python aborts at exit if it cannot take that lock. Handlers get an empty stdin.

The child refuses to work on another database than the dashboard shows.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from howdah.cli import output
from howdah.cli.commands import howdah
from howdah.cli.exit_codes import exit_code_for
from howdah.cli.load import load_queue
from howdah.errors import BadInput, HowdahError


def main() -> None:
    """Run the worker; the arguments are the queue, the database of the parent, and options."""
    target, parent_dsn, *options = sys.argv[1:]
    threading.Thread(target=_stop_with_parent, args=(_move_stdin(),), daemon=True).start()
    try:
        own_dsn = load_queue(target).store.shown_dsn
        if own_dsn != parent_dsn:
            raise BadInput(
                f"{target} uses {own_dsn}, but the dashboard shows {parent_dsn}: make it with "
                "Queue(), and name the database with --dsn or HOWDAH_DSN"
            )
    except HowdahError as error:
        output.error(str(error))
        sys.exit(exit_code_for(error))
    howdah(["worker", target, *options], prog_name="howdah")


def _move_stdin() -> int:
    """Return the pipe from the parent; stdin is empty from now on."""
    parent_pipe, empty = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return parent_pipe


def _stop_with_parent(parent_pipe: int) -> None:
    while os.read(parent_pipe, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
