"""Variants: the working tree and the commit, each with its own code and its own database.

Comes after   commits.py, which extracts the commit's source
Comes before  rounds.py, which measures them in turns

Both run in the same virtual environment, with the driver of this checkout. They differ in the
folder in which Python finds `howdah`. The working tree is copied first, so that edits during the
run do not change what is measured.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.aggregate import percentile
from bench.install import ROOT, Environment
from bench.measure.prepared_peer import Timing, prepare
from bench.measure.workload import measure
from bench.peer import Plan
from bench.peers.registry import PEERS
from bench.server import Postgres

HOWDAH = PEERS["howdah"]


@dataclass(frozen=True, slots=True)
class Variant:
    """One of the two versions of the code that are compared."""

    title: str
    source: Path

    @property
    def environment(self) -> Environment:
        python_path = os.pathsep.join((str(ROOT), str(self.source)))
        driver = (sys.executable, "-m", f"bench.peers.{HOWDAH.name}.driver")
        return Environment(self.source, ("env", f"PYTHONPATH={python_path}", *driver), {})

    def measure(self, workload: str, plan: Plan, postgres: Postgres) -> float:
        """Run a workload once in a new database; return jobs per second, or milliseconds."""
        with prepare(HOWDAH, self.environment, postgres, None) as prepared:
            return rate_or_pickup(measure(workload, plan, prepared))


def rate_or_pickup(timing: Timing) -> float:
    """Return the median pickup in milliseconds if there are pickups, and else the rate."""
    if timing.pickups_ms:
        return percentile(timing.pickups_ms, 50)
    return timing.jobs / timing.seconds


def copy_source(source: Path, folder: Path) -> Path:
    """Copy the working tree's source below a folder, and return the copy."""
    copy = folder / "working-tree"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(
        source / "howdah", copy / "howdah", ignore=shutil.ignore_patterns("__pycache__")
    )
    return copy


def same_code(first: Path, second: Path) -> bool:
    """Return whether two folders hold the same files with the same bytes."""
    return _files(first) == _files(second)


def _files(folder: Path) -> dict[Path, bytes]:
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
