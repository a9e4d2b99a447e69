"""howdah bench: measures how fast a database runs the work of a queue.

command.py    the command and its table
workloads.py  the workloads that are measured
cost.py       what a workload cost: time, CPU, WAL, statements
"""

from __future__ import annotations

from howdah.cli.bench.command import bench

__all__ = ["bench"]
