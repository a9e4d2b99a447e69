"""Scripted story: a few jobs and a few workers, in a fixed order, in a second.

Everything that a fleet does at random happens here once, over psycopg connections. So the checker
can be tested on an engine with one broken promise.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, LiteralString, cast

import psycopg

from tests.stories import move_log
from tests.stories.history import FAILED, OK, ROLLED_BACK, UNKNOWN, Fault, Log, read
from tests.stories.inspector import CLAIM, COMPLETE, LINE, unchanged
from tests.stories.scripted_effects import play_effects
from tests.stories.scripted_limits import play_limits
from tests.stories.story_result import StoryResult
from tests.support.background import BackgroundCall
from tests.support.waiting import wait_until

Lease = tuple[str, int]
LATER = timedelta(hours=1)


class Client:
    """A client with a connection and a part of the history."""

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
        """Claim `quick` jobs, and read the line before and after."""
        asked = self.log.ask("checked claim", worker=self.name)
        with self.connection.transaction():
            before = self.ask(LINE)
            jobs = self.ask(CLAIM, self.name, batch)
            after = self.ask(LINE)
        new = [job[:3] for job in jobs if job[3] == 1 and job[4]]
        self.log.answer(asked, OK, claimed=new, unclaimed=unchanged(before, after))
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


def play(dsn: str, folder: Path) -> StoryResult:
    """Play the story on a database that has only the engine in it."""
    move_log.install(dsn)
    clients = [Client(dsn, folder, name, pid) for pid, name in enumerate("abcdefghi", 1)]
    producer, anna, bert, cora, dora, emil, fred, gail, upkeep = clients
    try:
        _enqueue_in_every_way(producer)
        _claim_at_the_same_time(anna, bert, upkeep)
        _fail_until_the_end(producer, anna)
        _release(producer, fred, anna)
        faults = _fall_silent(producer, cora, dora, emil, upkeep)
        _cancel(producer, bert)
        play_limits(producer, anna, bert, fred)
        play_effects(producer, gail, fred)
        return StoryResult(read(folder, faults), move_log.read(dsn), lease=15.0)
    finally:
        for client in clients:
            client.connection.close()


def _enqueue_in_every_way(producer: Client) -> None:
    for n, priority in enumerate([30, 100, 100, 150, 100, 100]):
        producer.enqueue(f"kept-{n}", priority=priority)
    producer.enqueue("rolled-back", ROLLED_BACK)
    producer.enqueue("answer-lost", UNKNOWN)
    asked = producer.log.ask("enqueue", tokens=["refused"])
    producer.log.answer(asked, FAILED)


def _claim_at_the_same_time(anna: Client, bert: Client, watcher: Client) -> None:
    with anna.connection.transaction():
        first = anna.claim(2)
        call = BackgroundCall(lambda: bert.claim(2))
        _wait_until_over_or_blocked(call, bert, watcher)
    second = call.result()
    runs = anna.begin(first)
    anna.emit(first)
    anna.end(runs)
    anna.complete(first)
    bert.do(second)
    anna.do(anna.claim(10))


def _wait_until_over_or_blocked(
    call: BackgroundCall[list[Lease]], blocked: Client, watcher: Client
) -> None:
    """A claim waits for no other claim. In a broken engine it may: continue in both cases."""
    pid = blocked.connection.info.backend_pid
    sql = "select 1 from pg_stat_activity where pid = %s and wait_event_type = 'Lock'"
    wait_until(
        lambda: call.over or watcher.ask(sql, pid),
        "the claim has ended or waits for a lock",
        pause=0.002,
    )


def _fail_until_the_end(producer: Client, worker: Client) -> None:
    producer.enqueue("fails", job_type="doomed", max_attempts=2)
    for _ in range(3):
        worker.fail(worker.claim_type("doomed"))


def _release(producer: Client, first: Client, second: Client) -> None:
    producer.enqueue("released", job_type="released")
    first.release(first.claim_type("released"))
    second.do(second.claim_type("released"))


def _fall_silent(
    producer: Client,
    silent: Client,
    successor: Client,
    alive: Client,
    upkeep: Client,
) -> list[Fault]:
    """One worker is given up and reports late. Another takes as long, beats, and keeps its job."""
    began = time.monotonic()
    for client in (silent, alive):
        client.beat()
    producer.enqueue("taken", job_type="long")
    producer.enqueue("last", job_type="long", max_attempts=1)
    held = silent.claim_type("long", 2)
    runs = silent.begin(held)
    producer.enqueue("patient", job_type="patient")
    patient = alive.claim_type("patient")
    slowly = alive.begin(patient)
    for client in (successor, alive, upkeep):
        client.ask("select set_config('howdah.clock_offset', %s, false)", str(LATER))
    alive.beat()
    upkeep.ask("select howdah.recover_stale_jobs('1 minute')")
    inherited = successor.claim_type("long", 2)
    others = successor.begin(inherited)
    taken = successor.claim_type("patient")
    successor.do(taken)
    silent.end(runs)
    silent.complete(held)
    successor.end(others)
    successor.complete(inherited)
    alive.end(slowly)
    alive.complete(patient)
    return [Fault("silence", began, time.monotonic(), silences=frozenset({silent.pid}))]


def _cancel(producer: Client, worker: Client) -> None:
    producer.enqueue("cancelled", job_type="unwanted")
    leases = worker.claim_type("unwanted")
    runs = worker.begin(leases)
    producer.ask("select howdah.cancel(%s::uuid[], 'not needed')", [id for id, _ in leases])
    worker.end(runs, "cancelled")
