"""howdah dev: a database, a worker that starts again when the code changes, and the dashboard.

    command   puts the three together in one terminal
    watch     which files changed
    reload    the worker as a child process, and its end
    child     that process: `howdah worker`, tied to the life of its parent

The parent never imports the user's module, so a mistake in it cannot take the dashboard down.
"""

from __future__ import annotations

from howdah.cli.dev.command import dev

__all__ = ["dev"]
