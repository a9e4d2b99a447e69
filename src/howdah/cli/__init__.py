"""Command line: the queue for people, and for their scripts.

One file per command; commands.py names them all. What they share is in ground.py (the queue,
the output, the exit codes), options.py (what is typed) and words.py (what is read). No command
owns SQL: each calls the verbs of `Queue`, as any program would.
"""

from __future__ import annotations

from howdah.cli.commands import main

__all__ = ["main"]
