"""howdah bench: how fast this database does this work.

command.py  what is typed, and the table
works.py    the works that are measured
cost.py     what a work cost: CPU, WAL, statements
"""

from __future__ import annotations

from howdah.cli.bench.command import bench

__all__ = ["bench"]
