"""howdah dev: a database, a worker that restarts when the code changes, and the dashboard.

    command.py       the command: runs all three in one terminal
    file_watcher.py  which Python files changed
    reload.py        restarts the worker, which is a child process
    child.py         that process: `howdah worker`, which ends with its parent

The parent never imports the user's module, so an error in it cannot end the dashboard.
"""

from __future__ import annotations

from howdah.cli.dev.command import dev

__all__ = ["dev"]
