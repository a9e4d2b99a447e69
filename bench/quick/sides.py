"""Sides: the working tree and the commit, each with its own code and a store of its own.

Comes after   commits.py, which took the commit's source out of git
Comes before  rounds.py, which lets them take turns

Both run in the same virtual environment, with the driver of this checkout; what differs is the
folder in which Python finds `howdah`. The working tree is copied first, so that somebody who goes
on working during the run does not change what is measured.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.figures import percentile
from bench.install import ROOT, Environment
from bench.measure import Taken, measure, prepared
from bench.peer import Plan
from bench.peers.roster import ROSTER
from bench.server import Postgres

HOWDAH = ROSTER["howdah"]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two that are compared."""

    title: str
    source: Path

    @property
    def environment(self) -> Environment:
        found_in = os.pathsep.join((str(ROOT), str(self.source)))
        driver = (sys.executable, "-m", f"bench.peers.{HOWDAH.name}.driver")
        return Environment(self.source, ("env", f"PYTHONPATH={found_in}", *driver), {})

    def take(self, work: str, plan: Plan, postgres: Postgres) -> float:
        """Do one work once in a fresh database; returns jobs per second, or milliseconds."""
        with prepared(HOWDAH, self.environment, postgres, None) as ground:
            return value(measure(work, plan, ground))


def value(taken: Taken) -> float:
    """Make one number of what was taken: the median pickup, or the rate."""
    if taken.pickups_ms:
        return percentile(taken.pickups_ms, 50)
    return taken.jobs / taken.seconds


def frozen(source: Path, ground: Path) -> Path:
    """Copy the working tree's source below `ground`; returns the folder of the copy."""
    copy = ground / "working-tree"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(
        source / "howdah", copy / "howdah", ignore=shutil.ignore_patterns("__pycache__")
    )
    return copy


def same_code(one: Path, other: Path) -> bool:
    """Whether two folders hold the same files with the same bytes."""
    return _files(one) == _files(other)


def _files(folder: Path) -> dict[Path, bytes]:
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
