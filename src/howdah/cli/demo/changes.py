"""Changes: what changed between two snapshots of the queue.

A snapshot is the jobs and the workers as the database has them. scenario.py takes one a few times
a second. Each line of the demo is a difference between two snapshots, or a command of the demo.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple
from uuid import UUID

from howdah.cli import formatting
from howdah.job import Job
from howdah.observe.workers import WorkerHealth
from howdah.states import State
from howdah.text.printable import one_line


class Snapshot(NamedTuple):
    """The queue at one moment."""

    at: float  # seconds since the demo began
    jobs: list[Job]
    workers: list[WorkerHealth]

    @property
    def all_ended(self) -> bool:
        return all(job.status.finished for job in self.jobs)

    def pid(self, worker_id: str | None) -> str:
        """Return the process id of a worker, or its id if that is unknown."""
        for worker in self.workers:
            if worker.id == worker_id:
                return str(worker.info.get("pid", worker_id))
        return worker_id or ""


class Change(NamedTuple):
    """One change, as a line to print."""

    at: float
    kind: str  # a verb of the queue, or "$" for a command of the demo
    text: str
    style: str = ""
    minor: bool = False  # only printed as a plain line: on a terminal the bars show it


class ChangeDetector:
    """Compares each snapshot with the previous one."""

    def __init__(self) -> None:
        self._jobs: dict[UUID, Job] = {}
        self._alive: set[str] = set()

    def compare(self, snapshot: Snapshot) -> list[Change]:
        """Return what changed since the previous snapshot."""
        changes: list[Change] = []
        alive = {worker.id for worker in snapshot.workers if worker.alive}
        for id in sorted(alive - self._alive):
            changes.append(
                Change(snapshot.at, "worker", f"{snapshot.pid(id)} has started", minor=True)
            )
        for worker in snapshot.workers:
            if worker.id in self._alive and not worker.alive:
                text = (
                    f"{snapshot.pid(worker.id)} is silent and holds {formatting.jobs(worker.holds)}"
                )
                changes.append(Change(snapshot.at, "worker", text, "red"))
        for job in snapshot.jobs:
            changes += self._job_changes(snapshot, self._jobs.get(job.id), job)
        self._alive, self._jobs = alive, {job.id: job for job in snapshot.jobs}
        return [
            change if times == 1 else change._replace(text=f"{times}x {change.text}")
            for change, times in Counter(changes).items()
        ]

    def _job_changes(self, snapshot: Snapshot, before: Job | None, job: Job) -> list[Change]:
        changes: list[Change] = []
        known = len(before.errors) if before else 0
        ended = job.status.finished and (before is None or not before.status.finished)
        for entry in job.errors[known:]:
            if job.status is State.FAILED and entry is job.errors[-1]:
                break  # reported below as the end of the job
            if entry.get("worker_id") in {w.id for w in snapshot.workers if not w.alive}:
                pid = snapshot.pid(str(entry["worker_id"]))
                text = f"{job.job_type} recovered from {pid}, attempt {entry['attempt']} is lost"
                changes.append(Change(snapshot.at, "recover", text, "yellow"))
            elif job.status is not State.CANCELLED:
                error = one_line(str(entry.get("error", "")))
                text = f"{job.job_type} after attempt {entry['attempt']}: {error}"
                changes.append(Change(snapshot.at, "retry", text, "yellow"))
        if not ended:
            return changes
        if job.status is State.COMPLETED:
            again = job.attempts > 1
            by = f" on attempt {job.attempts}, by {snapshot.pid(job.worker_id)}" if again else ""
            text = f"{job.job_type}{by}"
            changes.append(Change(snapshot.at, "complete", text, "green", minor=not again))
        else:
            verb, style = (
                ("fail", "bold red") if job.status is State.FAILED else ("cancel", "magenta")
            )
            error = one_line(job.last_error or "")
            changes.append(Change(snapshot.at, verb, f"{job.job_type}: {error}", style))
        return changes
