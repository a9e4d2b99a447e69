"""Checks: compares the database at the end of the demo with what the demo promises."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

from howdah.cli import formatting
from howdah.cli.demo.scenario import ScenarioResult
from howdah.job import Job, Priority
from howdah.states import State
from howdah.text.printable import one_line


class Check(NamedTuple):
    """A promise, and whether it held."""

    passed: bool
    text: str


def check_result(result: ScenarioResult, enqueued: int) -> list[Check]:
    """Check every promise of the demo; `enqueued` is the number of jobs it enqueued."""
    return [*_checks(result, enqueued)]


def _checks(result: ScenarioResult, enqueued: int) -> Generator[Check]:
    jobs = result.snapshot.jobs
    pid = result.snapshot.pid
    counted = sum(sum(states.values()) for states in result.counts.values())
    ended = sum(job.status.finished for job in jobs)
    yield Check(
        len(jobs) == counted == ended == enqueued,
        f"{enqueued} jobs were enqueued and {ended} have ended: none is lost or duplicated",
    )
    explicit, backfill = (
        [job.started_at for job in jobs if job.priority == p and job.started_at]
        for p in (Priority.EXPLICIT, Priority.BACKFILL)
    )
    yield Check(
        bool(explicit and backfill) and min(explicit) < min(backfill),
        "explicit jobs started before backfill jobs, although they were enqueued last",
    )
    retried = _job_of_type(jobs, "fetch_rates")
    yield Check(
        (retried.status, retried.attempts) == (State.COMPLETED, 2) and len(retried.errors) == 1,
        f"fetch_rates failed once, was retried and {retried.status}",
    )
    broken = _job_of_type(jobs, "import_orders")
    yield Check(
        broken.status is State.FAILED and "line 17" in (broken.last_error or ""),
        f"import_orders {broken.status} without a retry: {one_line(broken.last_error or '')}",
    )
    export = _job_of_type(jobs, "export_all")
    yield Check(
        export.status is State.CANCELLED and 0 < export.progress < 100,
        f"export_all was {export.status} at {export.progress}%: "
        f"{one_line(export.last_error or '')}",
    )
    recovered = [
        job for job in jobs if any(_was_recovered(result.killed, error) for error in job.errors)
    ]
    finishers = {job.worker_id for job in recovered}
    yield Check(
        len([job for job in recovered if job.job_type == "transcode"]) >= 2
        and result.killed not in finishers
        and all(job.status.finished for job in recovered)
        and all(job.attempts == len(job.errors) + 1 for job in recovered if _completed(job)),
        f"worker {pid(result.killed)} was killed with -9; its {formatting.jobs(len(recovered))} "
        f"were finished by {', '.join(sorted(pid(id) for id in finishers))}",
    )


def _was_recovered(worker_id: str, error: dict[str, Any]) -> bool:
    """Tell whether an attempt ended because its worker fell silent."""
    return error["worker_id"] == worker_id and "went silent" in error["error"]


def _completed(job: Job) -> bool:
    return job.status is State.COMPLETED


def _job_of_type(jobs: list[Job], job_type: str) -> Job:
    return next(job for job in jobs if job.job_type == job_type)
