"""Resident: how much memory a process has, in KiB, as Linux counts it.

The peak is that of the present program: unlike getrusage's it forgets what ran before exec.
"""

from __future__ import annotations

from pathlib import Path


def resident_kib(pid: int | str = "self") -> int:
    return _status(pid, "VmRSS")


def peak_kib(pid: int | str = "self") -> int:
    return _status(pid, "VmHWM")


def _status(pid: int | str, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
