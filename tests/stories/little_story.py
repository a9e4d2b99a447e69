"""Little story: a few jobs and a few workers, played out by hand in a second.

Everything that a fleet does at random happens here once, in a fixed order, over connections of a
driver that is not ours: so the checker can be tried on an engine with one promise taken out.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, LiteralString, cast

import psycopg

from tests.stories import trail
from tests.stories.facts import Facts
from tests.stories.history import FAILED, OK, ROLLED_BACK, UNKNOWN, Fault, Log, read
from tests.stories.inspector import CLAIM, COMPLETE, LINE, stood
from tests.support.aside import Aside

Lease = tuple[str, int]
LATER = timedelta(hours=1)


class Player:
    """Somebody with a connection and a share of the history."""

    def __init__(self, dsn: str, folder: Path, name: str, pid: int) -> None:
        self.name, self.pid = name, pid
        self.connection = psycopg.connect(dsn, autocommit=True)
        self.connection.execute("set statement_timeout = '10s'")
        self.log = Log(folder, name, pid)
        self.log.write("here", worker=name)

    def ask(self, sql: str, *args: object) -> list[Any]:
        cursor = self.connection.execute(cast(LiteralString, sql), args)
        return cursor.fetchall() if cursor.description else []

    def enqueue(self, token: str, how: str = OK, **more: Any) -> None:
        asked = self.log.ask("enqueue", tokens=[token])
        options = {"job_type": "quick", "priority": 100, "max_attempts": 3, **more}
        drafts = json.dumps([{**options, "data": {"token": token}}])
        with self.connection.transaction(force_rollback=how == ROLLED_BACK):
            self.ask("select howdah.enqueue_many(%s)", drafts)
        self.log.answer(asked, how)

    def claim(self, batch: int) -> list[Lease]:
        """Claim `quick` jobs with a look at the line before and after."""
        asked = self.log.ask("look", worker=self.name)
        with self.connection.transaction():
            before = self.ask(LINE)
            jobs = self.ask(CLAIM, self.name, batch)
            after = self.ask(LINE)
        new = [job[:3] for job in jobs if job[3] == 1 and job[4]]
        self.log.answer(asked, OK, claimed=new, stood=stood(before, after))
        return [(job[0], job[3]) for job in jobs]

    def claim_type(self, job_type: str, batch: int = 1) -> list[Lease]:
        sql = "select id::text, attempts from howdah.claim_job_batch(%s, %s, %s)"
        return [(id, attempt) for id, attempt in self.ask(sql, self.name, [job_type], batch)]

    def begin(self, leases: Sequence[Lease]) -> list[int]:
        return [self.log.ask("began", job=job, attempt=attempt) for job, attempt in leases]

    def end(self, runs: Sequence[int], how: str = "returned") -> None:
        for run in runs:
            self.log.answer(run, how)

    def complete(self, leases: Sequence[Lease]) -> None:
        asked = self.log.ask("complete", worker=self.name, leases=list(leases))
        results = [json.dumps({"pid": self.pid, "attempt": attempt}) for _, attempt in leases]
        moved = self.ask(COMPLETE, self.name, *zip_leases(leases), results)
        self.log.answer(asked, OK, moved=[str(id) for (id,) in moved])

    def do(self, leases: Sequence[Lease]) -> None:
        runs = self.begin(leases)
        self.end(runs)
        self.complete(leases)

    def fail(self, leases: Sequence[Lease]) -> None:
        self.end(self.begin(leases), "raised")
        self.ask(
            "select howdah.retry(%s, %s::uuid[], %s::int[], %s::text[])",
            *(self.name, *zip_leases(leases), ["it broke"] * len(leases)),
        )

    def release(self, leases: Sequence[Lease]) -> None:
        ids, attempts = zip_leases(leases)
        self.ask("select howdah.release(%s, %s::uuid[], %s::int[])", self.name, ids, attempts)

    def emit(self, leases: Sequence[Lease]) -> None:
        self.ask(
            "select howdah.emit(%s, %s::uuid[], %s::int[], %s::text[], %s::jsonb[])",
            *(self.name, *zip_leases(leases), ["step"] * len(leases), ["1"] * len(leases)),
        )

    def beat(self) -> None:
        self.ask("select howdah.beat(%s, p_silent_after => '15 seconds')", self.name)


def zip_leases(leases: Sequence[Lease]) -> tuple[list[str], list[int]]:
    return [id for id, _ in leases], [attempt for _, attempt in leases]


def play(dsn: str, folder: Path) -> Facts:
    """Play the story on a database that has the engine and nothing else in it."""
    trail.lay(dsn)
    crew = [Player(dsn, folder, name, pid) for pid, name in enumerate("abcdefgh", 1)]
    producer, anna, bert, cora, dora, emil, fred, upkeep = crew
    try:
        _enqueue_in_every_way(producer)
        _claim_at_the_same_time(anna, bert, upkeep)
        _fail_until_the_end(producer, anna)
        _hand_back(producer, fred, anna)
        faults = _fall_silent(producer, cora, dora, emil, upkeep)
        _cancel(producer, bert)
        return Facts(read(folder, faults), trail.follow(dsn), lease=15.0)
    finally:
        for player in crew:
            player.connection.close()


def _enqueue_in_every_way(producer: Player) -> None:
    for n, priority in enumerate([30, 100, 100, 150, 100, 100]):
        producer.enqueue(f"kept-{n}", priority=priority)
    producer.enqueue("mind-changed", ROLLED_BACK)
    producer.enqueue("answer-lost", UNKNOWN)
    asked = producer.log.ask("enqueue", tokens=["refused"])
    producer.log.answer(asked, FAILED)


def _claim_at_the_same_time(anna: Player, bert: Player, watcher: Player) -> None:
    with anna.connection.transaction():
        first = anna.claim(2)
        aside = Aside(lambda: bert.claim(2))
        _wait_until_over_or_blocked(aside, bert, watcher)
    second = aside.result()
    runs = anna.begin(first)
    anna.emit(first)
    anna.end(runs)
    anna.complete(first)
    bert.do(second)
    anna.do(anna.claim(10))


def _wait_until_over_or_blocked(
    aside: Aside[list[Lease]], blocked: Player, watcher: Player
) -> None:
    """Nobody waits for another's claim; in an engine where somebody does, go on all the same."""
    until = time.monotonic() + 10
    pid = blocked.connection.info.backend_pid
    sql = "select 1 from pg_stat_activity where pid = %s and wait_event_type = 'Lock'"
    while not aside.over and not watcher.ask(sql, pid):
        assert time.monotonic() < until, "the claim neither ended nor came to stand at a lock"
        time.sleep(0.002)


def _fail_until_the_end(producer: Player, worker: Player) -> None:
    producer.enqueue("fails", job_type="doomed", max_attempts=2)
    for _ in range(3):
        worker.fail(worker.claim_type("doomed"))


def _hand_back(producer: Player, first: Player, second: Player) -> None:
    producer.enqueue("handed-back", job_type="handed")
    first.release(first.claim_type("handed"))
    second.do(second.claim_type("handed"))


def _fall_silent(
    producer: Player, silent: Player, heir: Player, alive: Player, upkeep: Player
) -> list[Fault]:
    """One worker is given up and comes back late; another takes as long and is left alone."""
    began = time.monotonic()
    for player in (silent, alive):
        player.beat()
    producer.enqueue("taken", job_type="long")
    producer.enqueue("last", job_type="long", max_attempts=1)
    held = silent.claim_type("long", 2)
    runs = silent.begin(held)
    producer.enqueue("patient", job_type="patient")
    patient = alive.claim_type("patient")
    slowly = alive.begin(patient)
    for player in (heir, alive, upkeep):
        player.ask("select set_config('howdah.clock_offset', %s, false)", str(LATER))
    alive.beat()
    upkeep.ask("select howdah.recover_stale_jobs('1 minute')")
    inherited = heir.claim_type("long", 2)
    others = heir.begin(inherited)
    robbed = heir.claim_type("patient")
    heir.do(robbed)
    silent.end(runs)
    silent.complete(held)
    heir.end(others)
    heir.complete(inherited)
    alive.end(slowly)
    alive.complete(patient)
    return [Fault("silence", began, time.monotonic(), silences=frozenset({silent.pid}))]


def _cancel(producer: Player, worker: Player) -> None:
    producer.enqueue("cancelled", job_type="unwanted")
    leases = worker.claim_type("unwanted")
    runs = worker.begin(leases)
    producer.ask("select howdah.cancel(%s::uuid[], 'not needed')", [id for id, _ in leases])
    worker.end(runs, "cancelled")
