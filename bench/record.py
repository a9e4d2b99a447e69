"""Record: everything one run found, as it is kept in records/<date>-<what>/record.json.

Written by compare.py; read by report.py, plot.py and table.py, so that what is printed and what is
published come from the same file.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from bench.peer import Peer
from bench.peers.roster import ROSTER

RECORDS = Path(__file__).resolve().parent / "records"
FILE = "record.json"


class Measurement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One work, done once with one peer; `problem` says why it does not count."""

    peer: str
    work: str
    repetition: int
    jobs: int
    processes: int = 1
    seconds: float = 0.0
    pickups_ms: tuple[float, ...] = ()
    problem: str | None = None


class PeerNote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A peer as it was in this run; `problem` says why it could not take part."""

    title: str
    store: str
    settings: str
    keeps: str
    versions: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    problem: str | None = None


class Record(msgspec.Struct, frozen=True, kw_only=True):
    trial: bool  # too few jobs, or not everything: shows that it works, not how fast
    whole: bool  # every peer and every work
    command: str
    date: str
    commit: str
    machine: dict[str, str]
    postgres: dict[str, str]
    redis: dict[str, str]
    peers: dict[str, PeerNote]
    measurements: list[Measurement]

    def problems(self) -> list[str]:
        """Say what could not be measured, and why."""
        missing = [f"{note.title}: {note.problem}" for note in self.peers.values() if note.problem]
        failed = [
            f"{self.peers[one.peer].title}, {one.work}, repetition {one.repetition}: {one.problem}"
            for one in self.measurements
            if one.problem
        ]
        return missing + failed


def note(peer: Peer, versions: dict[str, str], problem: str | None = None) -> PeerNote:
    return PeerNote(
        title=peer.title,
        store=peer.store,
        settings=peer.settings,
        keeps=peer.keeps,
        versions=versions,
        problem=problem,
    )


def in_order(names: Iterable[str]) -> list[str]:
    """Return names of peers in the order of the roster."""
    known = set(names)
    return [name for name in ROSTER if name in known]


def write(record: Record, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(record), indent=1)
    (folder / FILE).write_bytes(text + b"\n")


def read(folder: Path) -> Record:
    return msgspec.json.decode((folder / FILE).read_bytes(), type=Record)


def newest(records: Path = RECORDS) -> Path | None:
    """Find the folder of the newest record that has everybody in it."""
    found = [(read(path.parent), path.parent) for path in records.glob(f"*/{FILE}")]
    dated = [(record.date, folder) for record, folder in found if record.whole]
    return max(dated)[1] if dated else None
