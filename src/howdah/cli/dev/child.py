"""Child: `howdah worker` as a process that ends with its parent.

Its stdin is a lifeline: it closes when the parent is gone, however that came, and the worker goes
too. The lifeline is read without `sys.stdin`: a thread that waits in it would hold its lock, and
Python aborts when it cannot take that lock at its end. Handlers find an empty stdin.

It refuses to work on another database than the dashboard shows.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from howdah.cli import ground
from howdah.cli.commands import howdah
from howdah.cli.load import load_queue
from howdah.errors import BadInput, HowdahError


def main() -> None:
    """Work, as the parent says: which queue, on which database, and the options of the worker."""
    target, shown, *options = sys.argv[1:]
    threading.Thread(target=_end_with, args=(_lifeline(),), daemon=True).start()
    try:
        own = load_queue(target).store.shown_dsn
        if own != shown:
            raise BadInput(
                f"{target} works on {own}, but the dashboard shows {shown}: make it with Queue(), "
                "and name the database with --dsn or HOWDAH_DSN"
            )
    except HowdahError as error:
        ground.complain(str(error))
        sys.exit(ground.exit_for(error))
    howdah(["worker", target, *options], prog_name="howdah")


def _lifeline() -> int:
    """Move the lifeline out of the way: what reads from stdin would wait in it for ever."""
    lifeline, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return lifeline


def _end_with(lifeline: int) -> None:
    while os.read(lifeline, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
