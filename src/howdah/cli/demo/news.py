"""News: what happened since the last look, told from what the queue says.

Comes after   play.py, which looks at the queue a few times a second
Comes before  screen.py, which shows it

A look is the jobs and the workers as the database has them. Every line here is the difference
between two looks, or a command that the demo gave.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple
from uuid import UUID

from howdah.cli import words
from howdah.job import Job
from howdah.states import State
from howdah.store.ask import WorkerHealth
from howdah.text.printable import one_line


class Look(NamedTuple):
    """The queue at one moment."""

    at: float  # seconds since the demo began
    jobs: list[Job]
    workers: list[WorkerHealth]

    @property
    def over(self) -> bool:
        return all(job.status.finished for job in self.jobs)

    def pid(self, worker_id: str | None) -> str:
        """Name a worker by its process id, as people do."""
        for worker in self.workers:
            if worker.id == worker_id:
                return str(worker.info.get("pid", worker_id))
        return worker_id or ""


class News(NamedTuple):
    """One thing that happened."""

    at: float
    kind: str  # a verb of the queue, or "$" for a command of the demo
    text: str
    style: str = ""
    minor: bool = False  # for those who read lines and see no bars


class Newsroom:
    """Compares each look with the one before."""

    def __init__(self) -> None:
        self._jobs: dict[UUID, Job] = {}
        self._alive: set[str] = set()

    def compare(self, look: Look) -> list[News]:
        """Return what is new."""
        found: list[News] = []
        alive = {worker.id for worker in look.workers if worker.alive}
        for id in sorted(alive - self._alive):
            found.append(News(look.at, "worker", f"{look.pid(id)} has come", minor=True))
        for worker in look.workers:
            if worker.id in self._alive and not worker.alive:
                text = f"{look.pid(worker.id)} is silent, and holds {words.jobs(worker.holds)}"
                found.append(News(look.at, "worker", text, "red"))
        for job in look.jobs:
            found += self._job_news(look, self._jobs.get(job.id), job)
        self._alive, self._jobs = alive, {job.id: job for job in look.jobs}
        return [
            one if times == 1 else one._replace(text=f"{times}x {one.text}")
            for one, times in Counter(found).items()
        ]

    def _job_news(self, look: Look, before: Job | None, job: Job) -> list[News]:
        found: list[News] = []
        known = len(before.errors) if before else 0
        ended = job.status.finished and (before is None or not before.status.finished)
        for entry in job.errors[known:]:
            if job.status is State.FAILED and entry is job.errors[-1]:
                break  # told below, as the end it is
            if entry.get("worker_id") in {w.id for w in look.workers if not w.alive}:
                pid = look.pid(str(entry["worker_id"]))
                text = f"{job.job_type} taken back from {pid}, attempt {entry['attempt']} is lost"
                found.append(News(look.at, "recover", text, "yellow"))
            elif job.status is not State.CANCELLED:
                error = one_line(str(entry.get("error", "")))
                text = f"{job.job_type} after attempt {entry['attempt']}: {error}"
                found.append(News(look.at, "retry", text, "yellow"))
        if not ended:
            return found
        if job.status is State.COMPLETED:
            again = job.attempts > 1
            by = f" on attempt {job.attempts}, by {look.pid(job.worker_id)}" if again else ""
            text = f"{job.job_type}{by}"
            found.append(News(look.at, "complete", text, "green", minor=not again))
        else:
            verb, style = (
                ("fail", "bold red") if job.status is State.FAILED else ("cancel", "magenta")
            )
            error = one_line(job.last_error or "")
            found.append(News(look.at, verb, f"{job.job_type}: {error}", style))
        return found
