"""Memory usage of a process, in KiB, as Linux counts it.

The peak is that of the program which runs now. getrusage would also count what ran before exec.
"""

from __future__ import annotations

from pathlib import Path


def resident_kib(pid: int | str = "self") -> int:
    return _status_field(pid, "VmRSS")


def peak_kib(pid: int | str = "self") -> int:
    return _status_field(pid, "VmHWM")


def _status_field(pid: int | str, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
