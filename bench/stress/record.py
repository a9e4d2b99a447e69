"""Record: the results of one run of the stresses, kept in records/<date>-stress/record.json.

Comes after   measure.py
Comes before  report.py and charts.py, which show it

The names in the file stay as they are: old records have to be readable.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from bench.case_record import Point
from bench.record import FILE, PeerNote, write_json

Phase = Literal["clean", "stress", "recovery"]


class PhaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """One phase of a run: of the stress its last third, of the recovery what follows 5 seconds."""

    phase: Phase
    rate: float  # jobs/s that began
    p50_ms: float | None  # None: no job began
    p99_ms: float | None
    enqueue_p50_ms: float | None  # a part of the pickup; None: at saturation
    dead_rows: int | None  # the most at one time; None: there was no sample
    table_mb: float | None  # the largest
    index_mb: float | None
    waits: dict[str, float]  # active sessions on average, by what they waited for


class TableResult(msgspec.Struct, frozen=True, kw_only=True):
    """One job table of the peer, with its indexes."""

    name: str
    dead_rows: int  # the most at one time
    mb_clean: float  # the largest in the clean phase
    mb_most: float
    mb_last: float


class ChaosResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the kills and the restart did to the jobs."""

    kills: int
    ended_by_itself: int  # workers that ended without a kill, and were started again
    answered: int  # jobs whose enqueue call was answered
    failed: int  # jobs whose enqueue call failed: the server was away
    ran_twice: int  # jobs that began more than once
    never_began: int  # jobs whose call was answered
    left: int  # jobs that were not done at the end
    lost: int  # jobs that never began, and of which the store has nothing left
    longest_pause: float  # seconds without a job that began
    done_after: float | None  # seconds from the end of the stress; None: not all were done


class OverTime(msgspec.Struct, frozen=True, kw_only=True):
    """Values by second since the stress began."""

    rate: list[Point]
    p50_ms: list[Point]
    p99_ms: list[Point]
    dead_rows: list[Point]
    table_mb: list[Point]
    index_mb: list[Point]


class StressRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One peer under one stress; `problem` says why the run does not count."""

    peer: str
    stress: str
    phases: list[PhaseResult] = []
    tables: list[TableResult] = []
    history_mb: float = 0.0  # at the end: tables whose rows are never changed, with their indexes
    over_time: OverTime | None = None
    chaos: ChaosResult | None = None
    notes: list[str] = []  # what the peer cannot do
    problem: str | None = None


class StressRecord(msgspec.Struct, frozen=True, kw_only=True):
    trial: bool  # short phases, or not everything
    command: str
    date: str
    commit: str
    machine: dict[str, str]
    postgres: dict[str, str]
    seconds: dict[str, float]  # the lengths of the phases, and of the waits
    per_call: int  # jobs in an enqueue call, where they come at a rate
    peers: dict[str, PeerNote]
    recovery: dict[str, str]  # by peer: how jobs of a killed worker come back
    runs: list[StressRun]

    def run(self, peer: str, stress: str) -> StressRun | None:
        found = (run for run in self.runs if (run.peer, run.stress) == (peer, stress))
        return next(found, None)

    def problems(self) -> list[str]:
        """Return what could not be measured, and why."""
        missing = [f"{note.title}: {note.problem}" for note in self.peers.values() if note.problem]
        return missing + [
            f"{self.peers[run.peer].title}, {run.stress}: {run.problem}"
            for run in self.runs
            if run.problem
        ]


def write(record: StressRecord, folder: Path) -> None:
    write_json(record, folder / FILE)


def read(folder: Path) -> StressRecord:
    return msgspec.json.decode((folder / FILE).read_bytes(), type=StressRecord)
