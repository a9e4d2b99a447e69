"""Record: the result of one run of compare.py, kept in records/<date>-<name>/record.json.

report.py, bar_chart.py and table.py read it, so that what is printed and what is published come
from the same file. The names in the file stay as they are: old records have to be readable.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bench.install import WORK_FOLDER
from bench.peer import Peer
from bench.peers.registry import PEERS

RECORDS = Path(__file__).resolve().parent / "records"
FILE = "record.json"


class Measurement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One workload, run once with one peer; `problem` says why the result does not count."""

    peer: str
    workload: str = msgspec.field(name="work")
    turn: int = msgspec.field(name="repetition")
    jobs: int
    processes: int = 1
    seconds: float = 0.0
    pickups_ms: tuple[float, ...] = ()
    server_cpu_us: float | None = None  # per job, as the next two; older records lack them
    worker_cpu_us: float | None = None  # of the producer, where the workload is an enqueue
    wal_bytes: float | None = None
    problem: str | None = None


class PeerNote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A peer as it was in this run; `problem` says why it could not be measured."""

    title: str
    store: str
    settings: str
    keeps: str
    versions: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    problem: str | None = None


class _Head(msgspec.Struct, frozen=True):
    date: str
    whole: bool = False


class Record(msgspec.Struct, frozen=True, kw_only=True):
    trial: bool  # few jobs, or not everything: it shows that the benchmark works, not how fast
    whole: bool  # every peer and every workload
    command: str
    date: str
    commit: str
    machine: dict[str, str]
    postgres: dict[str, str]
    redis: dict[str, str]
    peers: dict[str, PeerNote]
    measurements: list[Measurement]
    quiet: bool = False  # drains began on a quiet server; in older records straight after the load

    def problems(self) -> list[str]:
        """Return what could not be measured, and why."""
        missing = [f"{note.title}: {note.problem}" for note in self.peers.values() if note.problem]
        failed = [
            f"{self.peers[failure.peer].title}, {failure.workload},"
            f" turn {failure.turn}: {failure.problem}"
            for failure in self.measurements
            if failure.problem
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
    """Return names of peers in the order of the registry."""
    known = set(names)
    return [name for name in PEERS if name in known]


def now() -> str:
    """Return the date and the time of a record."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def record_folder(date: str, name: str, *, trial: bool) -> Path:
    """Return where a record is kept: a trial is not part of the repository."""
    return (WORK_FOLDER / "records" if trial else RECORDS) / f"{date[:10]}-{name}"


def write(record: Record, folder: Path) -> None:
    write_json(record, folder / FILE)


def write_json(record: msgspec.Struct, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(record), indent=1)
    path.write_bytes(text + b"\n")


def read(folder: Path) -> Record:
    return msgspec.json.decode((folder / FILE).read_bytes(), type=Record)


def newest(records: Path = RECORDS) -> Path | None:
    """Return the folder of the newest record with every peer and every workload.

    Records of the stresses have the same name, and no `whole`.
    """
    heads = [
        (msgspec.json.decode(path.read_bytes(), type=_Head), path.parent)
        for path in records.glob(f"*/{FILE}")
    ]
    dated = [(head.date, folder) for head, folder in heads if head.whole]
    return max(dated)[1] if dated else None
