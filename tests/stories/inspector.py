"""Inspector: a foreign worker in SQL that checks the order of each of its claims.

    python -m tests.stories.inspector NAME SEED

In one transaction it reads the line, claims, and reads the line again. A job that was in both
readings, unchanged and never locked, was skipped if a worse job was claimed. The best of these jobs
go into the history. The inspector never beats, so it loses jobs that it holds for too long. It
claims `quick` jobs with psycopg, and runs until SIGTERM.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import psycopg

from tests.stories.history import OK, UNKNOWN, Log

# Jobs that were never claimed or locked: a row that was ever locked has an xmax.
LINE = """
    select id::text, priority, created_at::text, xmin::text || ctid::text from howdah.jobs
    where job_type = 'quick' and status = 'pending' and attempts = 0 and run_at is null
      and xmax::text = '0'
    order by priority desc, created_at limit 300
"""
CLAIM = """
    select id::text, priority, created_at::text, attempts, run_at is null
    from howdah.claim_job_batch(%s, array['quick'], %s)
"""
COMPLETE = "select howdah.complete(%s, %s::uuid[], %s, %s::jsonb[])"


Line = list[tuple[str, int, str, str]]


def unchanged(before: Line, after: Line) -> list[tuple[str, int, str]]:
    """Return the best of the jobs that were in line before and after, unchanged."""
    still = {(id, version) for id, _, _, version in after}
    return [line[:3] for line in before if (line[0], line[3]) in still][:10]


class Inspector:
    """Claims and completes until SIGTERM."""

    def __init__(self, name: str, seed: int) -> None:
        self._log = Log(Path(os.environ["STORY_FOLDER"]), name)
        self._rng = random.Random(seed)
        self._name = f"{name}:{os.getpid()}"
        self._stop = threading.Event()

    def run(self) -> None:
        signal.signal(signal.SIGTERM, self._on_sigterm)
        while not self._stop.is_set():
            try:
                with psycopg.connect(
                    os.environ["HOWDAH_DSN"], connect_timeout=5, target_session_attrs="read-write"
                ) as connection:
                    while not self._stop.is_set():
                        self._complete(connection, self._claim(connection))
                        self._stop.wait(self._rng.uniform(0.01, 0.1))
            except psycopg.Error:
                self._stop.wait(0.2)

    def _on_sigterm(self, number: int, frame: FrameType | None) -> None:
        self._stop.set()

    def _claim(self, connection: psycopg.Connection[Any]) -> list[tuple[str, int]]:
        asked = self._log.ask("checked claim", worker=self._name)
        try:
            before = connection.execute(LINE).fetchall()
            jobs = connection.execute(CLAIM, (self._name, self._rng.randint(1, 10))).fetchall()
            after = connection.execute(LINE).fetchall()
            connection.commit()
        except psycopg.Error:
            self._log.answer(asked, UNKNOWN)
            raise
        # Only first attempts of jobs without `run_at`: the order of others is not in LINE.
        new = [job[:3] for job in jobs if job[3] == 1 and job[4]]
        self._log.answer(asked, OK, claimed=new, unclaimed=unchanged(before, after))
        return [(job[0], job[3]) for job in jobs]

    def _complete(self, connection: psycopg.Connection[Any], leases: list[tuple[str, int]]) -> None:
        if not leases:
            return
        asked = self._log.ask("complete", worker=self._name, leases=leases)
        results = [json.dumps({"pid": os.getpid(), "attempt": attempt}) for _, attempt in leases]
        ids, attempts = [id for id, _ in leases], [attempt for _, attempt in leases]
        try:
            moved = connection.execute(COMPLETE, (self._name, ids, attempts, results)).fetchall()
            connection.commit()
        except psycopg.Error:
            self._log.answer(asked, UNKNOWN)
            raise
        self._log.answer(asked, OK, moved=[str(id) for (id,) in moved])


if __name__ == "__main__":
    Inspector(sys.argv[1], int(sys.argv[2])).run()
