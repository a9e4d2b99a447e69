"""Record: the results of one run, kept in records/<date>-admit/record.json.

The names in the file stay as they are: old records have to be readable.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from bench.aggregate import Results
from bench.case_record import Curve
from bench.record import FILE, PeerNote, write_json


class Measured(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One measurement of one row, in one turn; `problem` says why it does not count."""

    peer: str
    row: str
    turn: int = 1
    values: dict[str, float] = {}
    problem: str | None = None


class AdmitRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one run."""

    admit: bool = True  # what tells this record from those of other suites
    trial: bool
    command: str
    date: str
    commit: str
    machine: dict[str, str]
    postgres: dict[str, str]
    sizes: dict[str, float]  # how much was measured
    peers: dict[str, PeerNote]
    measured: list[Measured]
    curves: list[Curve]
    skipped: dict[str, str]  # rows that this code cannot run, and why

    def results(self) -> Results:
        """Return each value turn by turn, by peer and as `row.value`."""
        results: Results = {}
        for found in self.measured:
            if found.problem is None:
                for name, value in found.values.items():
                    series = results.setdefault((found.peer, f"{found.row}.{name}"), {})
                    series[found.turn] = value
        return results

    def problems(self) -> list[str]:
        """Return what could not be measured, and why."""
        missing = [f"{note.title}: {note.problem}" for note in self.peers.values() if note.problem]
        failed = [
            f"{self.peers[found.peer].title}, {found.row}, turn {found.turn}: {found.problem}"
            for found in self.measured
            if found.problem
        ]
        return missing + failed


class _Head(msgspec.Struct, frozen=True):
    date: str
    trial: bool = True
    admit: bool = False


def write(record: AdmitRecord, folder: Path) -> None:
    write_json(record, folder / FILE)


def read(folder: Path) -> AdmitRecord:
    return msgspec.json.decode((folder / FILE).read_bytes(), type=AdmitRecord)


def newest(records: Path) -> Path | None:
    """Return the folder of the newest full record of this suite."""
    heads = [
        (msgspec.json.decode(path.read_bytes(), type=_Head), path.parent)
        for path in records.glob(f"*/{FILE}")
    ]
    dated = [(head.date, folder) for head, folder in heads if head.admit and not head.trial]
    return max(dated)[1] if dated else None
