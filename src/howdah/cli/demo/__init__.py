"""howdah demo: shows the product in half a minute, on a private PostgreSQL.

    command.py   the command: prepares everything, prints the summary
    jobs.py      the job types, written like those of any program
    workers.py   the worker processes, one of which is killed
    scenario.py  enqueues, cancels, kills a worker with -9, waits until all jobs have ended
    changes.py   what changed between two snapshots of the queue
    display.py   a live view on a terminal, plain lines elsewhere
    checks.py    compares the database at the end with what the demo promises

Everything shown is read from the queue. The exit code says whether every check passed.
"""

from __future__ import annotations

from howdah.cli.demo.command import demo

__all__ = ["demo"]
