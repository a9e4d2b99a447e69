"""Promises: whether the database, asked at the end, says what the demo set out to show."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

from howdah.cli import words
from howdah.cli.demo.play import Played
from howdah.job import Job, Priority
from howdah.states import State
from howdah.text.printable import one_line


class Promise(NamedTuple):
    """Something promised, and whether it held."""

    held: bool
    text: str


def promises(played: Played, handed_over: int) -> list[Promise]:
    """Check everything that was promised against what the database says."""
    return [*_promises(played, handed_over)]


def _promises(played: Played, handed_over: int) -> Generator[Promise]:
    jobs = played.look.jobs
    pid = played.look.pid
    counted = sum(sum(states.values()) for states in played.counts.values())
    ended = sum(job.status.finished for job in jobs)
    yield Promise(
        len(jobs) == counted == ended == handed_over,
        f"{handed_over} jobs were handed over, {ended} have ended, none is lost or doubled",
    )
    explicit, backfill = (
        [job.started_at for job in jobs if job.priority == p and job.started_at]
        for p in (Priority.EXPLICIT, Priority.BACKFILL)
    )
    yield Promise(
        bool(explicit and backfill) and min(explicit) < min(backfill),
        "explicit jobs began before backfill ones, though handed over last",
    )
    flaky = _one(jobs, "fetch_rates")
    yield Promise(
        (flaky.status, flaky.attempts) == (State.COMPLETED, 2) and len(flaky.errors) == 1,
        f"fetch_rates failed once, was tried again and {flaky.status}",
    )
    broken = _one(jobs, "import_orders")
    yield Promise(
        broken.status is State.FAILED and "line 17" in (broken.last_error or ""),
        f"import_orders {broken.status} for good: {one_line(broken.last_error or '')}",
    )
    export = _one(jobs, "export_all")
    yield Promise(
        export.status is State.CANCELLED and 0 < export.progress < 100,
        f"export_all was {export.status} at {export.progress}%: "
        f"{one_line(export.last_error or '')}",
    )
    lost = [job for job in jobs if any(_taken_from(played.killed, e) for e in job.errors)]
    finishers = {job.worker_id for job in lost}
    yield Promise(
        len([job for job in lost if job.job_type == "transcode"]) >= 2
        and played.killed not in finishers
        and all(job.status.finished for job in lost)
        and all(job.attempts == len(job.errors) + 1 for job in lost if _completed(job)),
        f"worker {pid(played.killed)} was killed with -9; {words.jobs(len(lost))} of it were "
        f"finished by {', '.join(sorted(pid(id) for id in finishers))}",
    )


def _taken_from(worker_id: str, error: dict[str, Any]) -> bool:
    """Whether an attempt ended because its worker fell silent, and not by itself."""
    return error["worker_id"] == worker_id and "went silent" in error["error"]


def _completed(job: Job) -> bool:
    return job.status is State.COMPLETED


def _one(jobs: list[Job], job_type: str) -> Job:
    return next(job for job in jobs if job.job_type == job_type)
