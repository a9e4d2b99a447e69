"""Runs: the jobs of ordered keys that a worker holds behind the job before them.

Comes after   claim/run_claims.py  which claims them with the first job of the key
Comes before  run/executor.py      which starts each one when the job before it has ended for good
In SQL        sql/35_admit/claim_run.sql

A run saves the round trips between the jobs of a key. It is worth that only for fast jobs, so its
length follows how long jobs of the type take: a slow type has no runs. When a part of a run begins,
the next part is claimed already.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from uuid import UUID

from howdah.job import Claim

WORK = 0.05  # seconds of work in one run
LONGEST = 1000  # jobs in one run
LAST = 0.25  # seconds after its claim in which a run goes on: then pauses and rules hold again
MOST_SKIPPED = 16  # jobs of a type that are claimed without asking for a run, where none was found


class _Pace:
    """How long jobs of one type take, and whether runs were found."""

    __slots__ = ("seconds", "skip", "skipped")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.skip = 0  # how many jobs to claim without a run, after one that had none
        self.skipped = 0


class Run:
    """What a worker holds of one ordered key, behind the job that runs."""

    __slots__ = ("asked", "claims", "ends", "grows", "last", "until")

    def __init__(self, claims: Iterable[Claim], until: float) -> None:
        self.claims: deque[Claim] = deque(claims)
        self.last: Claim = self.claims[
            -1
        ]  # the last one that is known in the key: more may follow it
        self.until: float = until
        self.grows: bool = True  # whether more jobs may follow
        self.asked: bool = False  # whether they are being claimed
        self.ends: bool | None = None  # its last job ended meanwhile: whether for good


class Runs:
    """All runs of one worker, each by the job that must end before its next job begins."""

    def __init__(self) -> None:
        self._runs: dict[UUID, Run] = {}
        self._paces: dict[str, _Pace] = {}
        self._growing: list[Run] = []  # those for which more jobs should be claimed
        self.on_growing: Callable[[], None] = lambda: None  # called when there is the first of them

    def __bool__(self) -> bool:
        return bool(self._runs)

    def leases(self) -> list[tuple[UUID, int]]:
        return [(claim.id, claim.attempt) for run in self._runs.values() for claim in run.claims]

    # ── how long ──────────────────────────────────────────────────────────────────────────

    def ended(self, job_type: str, seconds: float) -> None:
        """Learn how long a job took. Slow jobs count more, so that a run is rather too short."""
        if (pace := self._paces.get(job_type)) is None:
            self._paces[job_type] = _Pace(seconds)
        else:
            share = 2 if seconds > pace.seconds else 8
            pace.seconds += (seconds - pace.seconds) / share

    def wanted(self, claim: Claim) -> int:
        """How many jobs should follow this one; 0: a call is not worth it."""
        if (pace := self._paces.get(claim.job_type)) is None:
            return 0
        if pace.skipped < pace.skip:
            pace.skipped += 1
            return 0
        most = self.most(claim.job_type)
        return most if most > 1 else 0

    def most(self, job_type: str) -> int:
        """How many jobs of this type take as long as a run should."""
        pace = self._paces.get(job_type)
        return 0 if pace is None else int(WORK / max(pace.seconds, WORK / LONGEST))

    def found(self, job_type: str, jobs: int) -> None:
        """Learn whether jobs followed: where none did, ask less often."""
        pace = self._paces[job_type]
        pace.skipped = 0
        pace.skip = 0 if jobs else min(2 * pace.skip + 1, MOST_SKIPPED)

    # ── the runs ──────────────────────────────────────────────────────────────────────────

    def add(self, head: Claim, claims: Iterable[Claim], now: float) -> None:
        """Keep the jobs that follow this one."""
        self._runs[head.id] = Run(claims, now + LAST)

    def next_after(self, claim: Claim, now: float) -> Claim | None:
        """Take the job that follows this one, if its run goes on."""
        run = self._runs.get(claim.id)
        if run is None or now > run.until or not run.claims:
            return None
        del self._runs[claim.id]
        following = run.claims.popleft()
        self._runs[following.id] = run
        if run.grows and not run.asked and self.most(claim.job_type):
            run.asked = True
            self._growing.append(run)
            if len(self._growing) == 1:
                self.on_growing()
        return following

    def take(self, claim: Claim, *, ended: bool = False) -> Iterable[Claim]:
        """End the run behind this job; returns what follows it, to be released.

        `ended`: the job has ended for good. Then jobs that are being claimed may still follow.
        """
        run = self._runs.pop(claim.id, None)
        if run is None:
            return ()
        run.grows, run.ends = False, ended and not run.claims
        return run.claims

    def empty(self) -> list[Claim]:
        """Take all jobs of all runs, to release them."""
        runs, self._runs = self._runs, {}
        for run in runs.values():
            run.grows, run.ends = False, False
        return [claim for run in runs.values() for claim in run.claims]

    # ── more ──────────────────────────────────────────────────────────────────────────────

    def growing(self) -> list[Run]:
        """Return the runs for which to claim more jobs now."""
        growing, self._growing = self._growing, []
        return [run for run in growing if run.grows]

    def grown(self, run: Run, claims: list[Claim], now: float) -> tuple[list[Claim], list[Claim]]:
        """Add the jobs that were claimed for a run; returns which to start, and which to release.

        If the run has ended for good meanwhile, its next job starts as any claimed job.
        """
        run.asked = False
        run.grows = run.grows and bool(claims)
        if not claims:
            return [], []
        if run.ends is None:
            run.claims.extend(claims)
            run.last = claims[-1]
            return [], []
        if not run.ends or now > run.until:
            return [], claims
        if claims[1:]:
            self._runs[claims[0].id] = Run(claims[1:], run.until)
        return claims[:1], []
