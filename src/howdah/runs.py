"""Runs: the jobs of ordered keys that a worker holds behind the job before them.

Comes after   claim/loop.py    which claims them with the first job of the key
Comes before  run/executor.py  which starts each of them when the one before it has ended for good
In SQL        sql/35_admit/claim_run.sql

A run saves the round trips between the jobs of a key. It is worth that only for fast jobs, so its
length follows how long jobs of the type take: a slow type has no runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
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


class _Run:
    """The rest of one run."""

    __slots__ = ("claims", "until")

    def __init__(self, claims: Iterable[Claim], until: float) -> None:
        self.claims = deque(claims)
        self.until = until


class Runs:
    """All runs of one worker, each by the job that must end before its next job begins."""

    def __init__(self) -> None:
        self._runs: dict[UUID, _Run] = {}
        self._paces: dict[str, _Pace] = {}

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
        most = min(int(WORK / max(pace.seconds, WORK / LONGEST)), LONGEST)
        return most if most > 1 else 0

    def found(self, job_type: str, jobs: int) -> None:
        """Learn whether jobs followed: where none did, ask less often."""
        pace = self._paces[job_type]
        pace.skipped = 0
        pace.skip = 0 if jobs else min(2 * pace.skip + 1, MOST_SKIPPED)

    # ── the runs ──────────────────────────────────────────────────────────────────────────

    def add(self, head: Claim, claims: Iterable[Claim], now: float) -> None:
        """Keep the jobs that follow this one."""
        self._runs[head.id] = _Run(claims, now + LAST)

    def next_after(self, claim: Claim, now: float) -> Claim | None:
        """Take the job that follows this one, if its run goes on."""
        run = self._runs.get(claim.id)
        if run is None or now > run.until:
            return None
        del self._runs[claim.id]
        following = run.claims.popleft()
        if run.claims:
            self._runs[following.id] = run
        return following

    def take(self, claim: Claim) -> Iterable[Claim]:
        """Take all jobs that follow this one, to release them."""
        run = self._runs.pop(claim.id, None)
        return () if run is None else run.claims

    def empty(self) -> list[Claim]:
        """Take all jobs of all runs, to release them."""
        claims = [claim for run in self._runs.values() for claim in run.claims]
        self._runs.clear()
        return claims
