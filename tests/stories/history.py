"""History: every call that a process of a story made, and how it ended, as lines in files.

A process writes a line before it asks and a line when it knows the answer: `ok`, `failed`
(certainly nothing happened) or `unknown` (the answer got lost, so it may have happened). A
line is one write, so kill -9 leaves whole lines; a question without an answer is unknown.
Times are of the machine's monotonic clock: all processes share it, and no patched clock moves it.
Workers of howdah's own say in their log (`<pid>.log`) who they are and what they were told.

This is what the processes say. What the database says is in trail.py; checker.py compares.
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

_TOLD = re.compile(r"job\.(?:stale|lost) id=(\S+) type=\S+ attempt=(\d+)")
_STARTED = re.compile(r"worker\.started id=(\S+)")


class Log:
    """One process's share of the history."""

    def __init__(self, folder: Path, who: str, pid: int | None = None) -> None:
        self.who = who
        self.pid = os.getpid() if pid is None else pid
        self._numbers = itertools.count(1)
        path = folder / f"{who}-{self.pid}.jsonl"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, what: str, **facts: Any) -> None:
        line = {"at": time.monotonic(), "who": self.who, "pid": self.pid, "what": what, **facts}
        os.write(self._file, json.dumps(line).encode() + b"\n")

    def ask(self, what: str, **facts: Any) -> int:
        """Write down that a call begins; returns the number its answer is given under."""
        number = next(self._numbers)
        self.write(what, ask=number, **facts)
        return number

    def answer(self, ask: int, how: str, **facts: Any) -> None:
        self.write("answer", to=ask, how=how, **facts)


@dataclass(frozen=True)
class Enqueued:
    """An attempt to hand over a job; the token is in the job's payload, and nowhere else."""

    token: str
    how: str


@dataclass(frozen=True)
class Run:
    """A handler at work on one attempt of a job."""

    job: str
    attempt: int
    worker: str
    pid: int
    began: float
    ended: float | None  # None: it never said so; its process died or was cut off
    how: str | None  # returned, raised, cancelled


@dataclass(frozen=True)
class Settled:
    """A call that reported an attempt as completed, by a worker that speaks SQL alone."""

    job: str
    attempt: int
    worker: str
    asked: float
    how: str
    moved: bool | None  # what the database answered


@dataclass(frozen=True)
class Look:
    """A claim with a look at the line before and after it, inside one transaction.

    Each job is (id, priority, created_at). What `stood` there was in line before and after,
    visible and locked by nobody all the time; of these the best are kept, the best first.
    """

    worker: str
    claimed: list[tuple[str, int, str]]  # in the order they came
    stood: list[tuple[str, int, str]]


@dataclass(frozen=True)
class Fault:
    """Something done to the story, and whom it may have silenced."""

    name: str
    began: float
    healed: float
    silences: frozenset[int] = frozenset()  # processes whose worker may rightly be given up
    kills: frozenset[int] = frozenset()  # processes that were ended on purpose
    silences_all: bool = False  # the server or the network was away from everybody
    crash: bool = False  # the server lost what was not on disk yet


@dataclass
class History:
    """All that the processes of a story said."""

    enqueued: list[Enqueued] = field(default_factory=list[Enqueued])
    runs: list[Run] = field(default_factory=list[Run])
    settled: list[Settled] = field(default_factory=list[Settled])
    looks: list[Look] = field(default_factory=list[Look])
    workers: dict[int, str] = field(default_factory=dict[int, str])  # process → worker id
    told: set[tuple[str, str, int]] = field(default_factory=set[tuple[str, str, int]])
    faults: list[Fault] = field(default_factory=list[Fault])

    def given_up_rightly(self, pid: int | None, at: float, lease: float) -> bool:
        """Whether some fault explains that this process looked silent at that time."""
        return any(
            (fault.silences_all or pid in fault.silences | fault.kills)
            and fault.began <= at
            and (pid in fault.kills or at <= fault.healed + 3 * lease)
            for fault in self.faults
        )

    def crashed_around(self, at: float) -> bool:
        """Whether the server crashed just after, so that a claim was answered and then lost."""
        return any(fault.crash and fault.began - 2 <= at <= fault.healed for fault in self.faults)


def read(folder: Path, faults: Iterable[Fault] = ()) -> History:
    """Put together what all processes wrote."""
    history = History(faults=list(faults))
    for path in sorted(folder.glob("*.log")):
        _take_log(history, path)
    files = [list(_lines(path)) for path in sorted(folder.glob("*.jsonl"))]
    history.workers |= {
        line["pid"]: line["worker"] for lines in files for line in lines if "worker" in line
    }
    for lines in files:
        answers = {line["to"]: line for line in lines if line["what"] == "answer"}
        for line in lines:
            _take(history, line, answers.get(line.get("ask")))
    return history


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text().splitlines(keepends=True):
        if line.endswith("\n"):
            yield json.loads(line)


def _take(
    history: History,
    line: dict[str, Any],
    answer: dict[str, Any] | None,
) -> None:
    how = answer["how"] if answer else UNKNOWN
    if line["what"] == "enqueue":
        history.enqueued.extend(Enqueued(token, how) for token in line["tokens"])
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
    elif line["what"] == "look" and answer and how == OK:
        history.looks.append(
            Look(
                line["worker"],
                claimed=[(id, priority, made) for id, priority, made in answer["claimed"]],
                stood=[(id, priority, made) for id, priority, made in answer["stood"]],
            )
        )


def _take_log(history: History, path: Path) -> None:
    pid = int(path.stem)
    for line in path.read_text(errors="replace").splitlines():
        if found := _STARTED.search(line):
            history.workers[pid] = found[1]
        elif found := _TOLD.search(line):
            history.told.add((history.workers.get(pid, "?"), found[1], int(found[2])))
