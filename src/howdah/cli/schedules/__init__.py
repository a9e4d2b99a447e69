"""howdah schedules: list the schedules, and change them.

command.py   the group, which lists them
change.py    set, pause, resume, remove, run-now
upcoming.py  next: the firings to come
table.py     schedules as a table
"""

from __future__ import annotations

from howdah.cli.schedules.command import schedules

__all__ = ["schedules"]
