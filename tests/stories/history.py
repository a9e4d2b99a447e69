"""History: every call that a process of a story made, and how it ended, as lines in files.

A process writes a line before a call and a line when it knows the answer: `ok`, `failed` (nothing
happened) or `unknown` (the answer was lost, so it may have happened). One line is one write, so
kill -9 leaves whole lines. A call without an answer is unknown. All processes share the machine's
monotonic clock. howdah's workers write their id and their lost jobs to a log (`<pid>.log`).

checker.py compares these records with the database (move_log.py).
"""

from __future__ import annotations

import itertools
import json
import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OK, FAILED, UNKNOWN, ROLLED_BACK = "ok", "failed", "unknown", "rolled back"
EXISTED = "existed"  # another job has the unique key, and the enqueue returned its id

_LOST = re.compile(r"job\.(?:stale|lost) id=(\S+) type=\S+ attempt=(\d+)")
_STARTED = re.compile(r"worker\.started id=(\S+)")


class Log:
    """The lines of one process."""

    def __init__(self, folder: Path, who: str, pid: int | None = None) -> None:
        self.who = who
        self.pid = os.getpid() if pid is None else pid
        self._numbers = itertools.count(1)
        path = folder / f"{who}-{self.pid}.jsonl"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, what: str, **details: Any) -> None:
        line = {"at": time.monotonic(), "who": self.who, "pid": self.pid, "what": what, **details}
        os.write(self._file, json.dumps(line).encode() + b"\n")

    def ask(self, what: str, **details: Any) -> int:
        """Record that a call begins; returns the number that its answer refers to."""
        number = next(self._numbers)
        self.write(what, ask=number, **details)
        return number

    def answer(self, ask: int, how: str, **details: Any) -> None:
        self.write("answer", to=ask, how=how, **details)


@dataclass(frozen=True)
class Enqueued:
    """An attempt to enqueue a job; the token is in the job's payload, and nowhere else."""

    token: str
    how: str
    asked: float = 0.0
    answered: float = float("inf")
    pid: int = 0
    nth: int = 0  # its place in the call
    holder: str | None = None  # of its unique key, if it existed


@dataclass(frozen=True)
class Run:
    """A handler that ran one attempt of a job."""

    job: str
    attempt: int
    worker: str
    pid: int
    began: float
    ended: float | None  # None: it recorded no end; its process died or was cut off
    how: str | None  # returned, raised, cancelled


@dataclass(frozen=True)
class Settled:
    """A call of `complete` by a foreign worker, for one attempt."""

    job: str
    attempt: int
    worker: str
    called_at: float
    how: str
    moved: bool | None  # the answer of the database


@dataclass(frozen=True)
class CheckedClaim:
    """A claim by the inspector, which read the line before and after it in one transaction.

    Each job is (id, priority, created_at). `unclaimed` are the best of the jobs that were in line
    before and after, visible and unlocked all the time; the best first.
    """

    worker: str
    claimed: list[tuple[str, int, str]]  # in the order of the answer
    unclaimed: list[tuple[str, int, str]]


@dataclass(frozen=True)
class Fault:
    """A fault, and the processes that it may have silenced."""

    name: str
    began: float
    ended: float
    silences: frozenset[int] = frozenset()  # processes whose worker may be given up
    kills: frozenset[int] = frozenset()  # processes that the fault killed
    silences_all: bool = False  # no process could reach the server
    crash: bool = False  # the server lost what was not on disk


@dataclass
class History:
    """Everything that the processes of a story recorded."""

    enqueued: list[Enqueued] = field(default_factory=list[Enqueued])
    runs: list[Run] = field(default_factory=list[Run])
    settled: list[Settled] = field(default_factory=list[Settled])
    checked_claims: list[CheckedClaim] = field(default_factory=list[CheckedClaim])
    workers: dict[int, str] = field(default_factory=dict[int, str])  # process → worker id
    reported_lost: set[tuple[str, str, int]] = field(default_factory=set[tuple[str, str, int]])
    faults: list[Fault] = field(default_factory=list[Fault])

    def explains_silence(self, pid: int | None, at: float, lease: float) -> bool:
        """Whether a fault explains that this process was silent at that time."""
        return any(
            (fault.silences_all or pid in fault.silences | fault.kills)
            and fault.began <= at
            and (pid in fault.kills or at <= fault.ended + 3 * lease)
            for fault in self.faults
        )

    def crashed_around(self, at: float) -> bool:
        """Whether the server crashed soon after, so that an answered claim may be lost."""
        return any(fault.crash and fault.began - 2 <= at <= fault.ended for fault in self.faults)


def read(folder: Path, faults: Iterable[Fault] = ()) -> History:
    """Read the records of all processes."""
    history = History(faults=list(faults))
    for path in sorted(folder.glob("*.log")):
        _add_log(history, path)
    files = [list(_lines(path)) for path in sorted(folder.glob("*.jsonl"))]
    history.workers |= {
        line["pid"]: line["worker"] for lines in files for line in lines if "worker" in line
    }
    for lines in files:
        answers = {line["to"]: line for line in lines if line["what"] == "answer"}
        for line in lines:
            _add_line(history, line, answers.get(line.get("ask")))
    return history


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text().splitlines(keepends=True):
        if line.endswith("\n"):
            yield json.loads(line)


def _add_line(
    history: History,
    line: dict[str, Any],
    answer: dict[str, Any] | None,
) -> None:
    how = answer["how"] if answer else UNKNOWN
    if line["what"] == "enqueue":
        holders: dict[str, str] = answer.get("existed", {}) if answer else {}
        history.enqueued.extend(
            Enqueued(
                *(token, EXISTED if token in holders else how),
                asked=line["at"],
                answered=answer["at"] if answer else float("inf"),
                pid=line["pid"],
                nth=nth,
                holder=holders.get(token),
            )
            for nth, token in enumerate(line["tokens"])
        )
    elif line["what"] == "began":
        history.runs.append(
            Run(
                *(line["job"], line["attempt"], history.workers.get(line["pid"], "?")),
                *(line["pid"], line["at"]),
                ended=answer["at"] if answer else None,
                how=answer["how"] if answer else None,
            )
        )
    elif line["what"] == "complete":
        moved = set(answer["moved"]) if answer and how == OK else None
        history.settled.extend(
            Settled(
                *(job, attempt, line["worker"], line["at"], how),
                moved=None if moved is None else job in moved,
            )
            for job, attempt in line["leases"]
        )
    elif line["what"] == "checked claim" and answer and how == OK:
        history.checked_claims.append(
            CheckedClaim(
                line["worker"],
                claimed=[(id, priority, made) for id, priority, made in answer["claimed"]],
                unclaimed=[(id, priority, made) for id, priority, made in answer["unclaimed"]],
            )
        )


def _add_log(history: History, path: Path) -> None:
    pid = int(path.stem)
    for line in path.read_text(errors="replace").splitlines():
        if match := _STARTED.search(line):
            history.workers[pid] = match[1]
        elif match := _LOST.search(line):
            history.reported_lost.add((history.workers.get(pid, "?"), match[1], int(match[2])))
