"""Stress: producers, workers and meddlers on a few keys and limits, each in a thread.

Producers hold transactions open, roll back, and enqueue by every way. Workers complete, fail,
retry, snooze, release and die. Meddlers cancel, change priorities, lock rows and send plain SQL.
The whole takes some seconds. `run` returns the history of what happened.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import psycopg
from psycopg.types.json import Jsonb

from tests.admit.history import History, Rule, Run
from tests.support import Claimed, Session
from tests.support.database import Clock

RULES = {
    "ordered": Rule(1, ordered=True),
    "wide": Rule(3),
    "one": Rule(1, limit="api"),
    "plain": Rule(None),
    "limited": Rule(None, limit="api"),
    "fair": Rule(None, fair=True),
    "fair limited": Rule(None, limit="api", fair=True),
}
LIMITS = {"api": 4}
KEYS = {"ordered": 3, "wide": 3, "one": 10, "plain": 1, "limited": 1, "fair": 3, "fair limited": 3}

PRODUCERS, WORKERS, MEDDLERS = 3, 5, 2
ROUNDS = 40  # transactions per producer
STUCK = 5.0  # seconds without any progress

# raised by plain UPDATEs of other sessions, or by locks that cross: the caller tries again
EXPECTED = (
    psycopg.errors.SerializationFailure,
    psycopg.errors.DeadlockDetected,
)


class Stress:
    def __init__(self, dsn: str, seed: int) -> None:
        self._dsn = dsn
        self._seed = seed
        self._produced = threading.Event()
        self._drained = threading.Event()
        self._as_of: dict[int, str | None] = {}
        self.history = History(RULES, LIMITS)

    def run(self) -> History:
        setup = self._session()
        for name, at_once in LIMITS.items():
            setup.execute("select howdah.set_limit(%s, %s)", name, at_once)
        for job_type, rule in RULES.items():
            if rule._replace(ordered=False) != Rule(None):
                setup.execute(
                    "select howdah.set_type_limit(%s, %s, %s, %s, p_fair => %s)",
                    *(job_type, rule.slots, rule.ordered, rule.limit, rule.fair),
                )
        producers = [self._start(self._produce, n) for n in range(PRODUCERS)]
        others = [self._start(self._work, n) for n in range(WORKERS)]
        meddlers = [self._start(self._meddle, n) for n in range(MEDDLERS)]
        others += [self._start(self._keep_up, 0), self._start(self._observe, 0)]
        for thread in producers:
            thread.join()
        self._produced.set()
        for thread in meddlers:
            thread.join()
        self._wait_until_drained(setup)
        self._drained.set()
        for thread in others:
            thread.join()
        cancelled = "select id from jobs_finished where status = 'cancelled' or worker_id is null"
        self.history.lost |= set(setup.column(cancelled))
        setup.close()
        return self.history

    def _session(self) -> Session:
        return Session(self._dsn, Clock())

    def _start(
        self, act: Callable[[Session, random.Random, int], None], n: int
    ) -> threading.Thread:
        def body() -> None:
            session = self._session()
            try:
                act(session, random.Random(f"{self._seed} {act.__name__} {n}"), n)
            except Exception as error:
                self.history.errors.append(f"{act.__name__}: {error!r}")
            finally:
                session.close()

        thread = threading.Thread(target=body, daemon=True)
        thread.start()
        return thread

    def _wait_until_drained(self, session: Session) -> None:
        """Return when no job is left, or when nothing has changed for a while."""
        last, since = -1, time.monotonic()
        while left := session.value("select count(*) from jobs_live"):
            now = session.value("select count(*) from jobs_finished")
            if now != last:
                last, since = now, time.monotonic()
            elif time.monotonic() > since + STUCK:
                self.history.left = session.rows(
                    "select job_type, key, admission, status, arrival from jobs_live order by 5"
                )
                return
            time.sleep(0.02 if left else 0)

    def _produce(self, session: Session, chance: random.Random, _: int) -> None:
        mine: list[tuple[str, str | None, object]] = []
        self.history.enqueued.append(mine)  # type: ignore[arg-type]
        for _round in range(ROUNDS):
            written: list[tuple[str, str | None, object]] = []
            keep = chance.random() < 0.9
            with session.transaction() if keep else session.rolled_back():
                for _job in range(chance.choice([1, 1, 1, 3])):
                    job_type = chance.choice(list(RULES))
                    key = f"key-{chance.randrange(KEYS[job_type])}"
                    written += [
                        (job_type, key, id) for id in self._enqueue(session, chance, job_type, key)
                    ]
                if chance.random() < 0.2:
                    time.sleep(chance.random() * 0.05)
            if keep:
                mine += written
            time.sleep(chance.random() * 0.01)

    def _enqueue(
        self, session: Session, chance: random.Random, job_type: str, key: str
    ) -> list[object]:
        # the order is that of enqueueing, so only other keys get priorities and times
        free = not RULES[job_type].ordered
        priority = chance.choice([50, 100, 200]) if free else 100
        match chance.randrange(3):
            case 0:
                delay = timedelta(milliseconds=100) if free and chance.random() < 0.2 else None
                job = session.enqueue(
                    job_type, priority=priority, delay=delay, max_attempts=6, key=key
                )
                return [job]
            case 1:
                drafts = [{"job_type": job_type, "key": key, "max_attempts": 6}]
                return list(session.enqueue_many(drafts * chance.choice([1, 4])))
            case _:
                return session.column(
                    "insert into jobs (job_type, key, priority) values (%s, %s, %s) returning id",
                    *(job_type, key, priority),
                )

    def _admit(self, session: Session) -> None:
        """Admit as a worker does: it reads only what came after its last look."""
        since = self._as_of.pop(session.pid, None)
        rows = []
        with suppress(*EXPECTED):
            rows = session.rows("select as_of from howdah.admit(%s)", since)
        self._as_of[session.pid] = rows[0]["as_of"] if rows else since

    def _work(self, session: Session, chance: random.Random, n: int) -> None:
        life = 0
        while not self._drained.is_set():
            worker = f"worker-{n}-{life}"
            if chance.random() < 0.1:
                self._admit(session)
            claims = session.claim(*RULES, worker=worker, batch=chance.choice([1, 2, 10]))
            follow = self._follow(session, chance, claims)
            if not claims:
                self._admit(session)
                time.sleep(0.002)
                continue
            if chance.random() < 0.03:  # it dies with what it holds
                self.history.lost |= {claim.id for claim in [*claims, *follow]}
                life += 1
                continue
            self._end(session, chance, claims)
            self._end_runs(session, chance, claims, follow)

    def _follow(
        self, session: Session, chance: random.Random, claims: list[Claimed]
    ) -> list[Claimed]:
        """Claim the runs behind these jobs, sometimes."""
        heads = [claim for claim in claims if RULES[claim.job_type].ordered]
        with suppress(*EXPECTED):
            if chance.random() < 0.7:
                return session.claim_run(heads, chance.choice([1, 3, 10]))
        return []

    def _end_runs(
        self,
        session: Session,
        chance: random.Random,
        heads: list[Claimed],
        follow: list[Claimed],
    ) -> None:
        """Run these jobs one after the other in each key, and write their ends together."""
        runs: dict[object, list[Claimed]] = {}
        keys = self._keys(session, [*heads, *follow])
        for claim in follow:
            runs.setdefault(keys.get(claim.id), []).append(claim)
        went_on = {
            keys.get(head.id)
            for head in heads
            if RULES[head.job_type].ordered
            and session.value("select count(*) from jobs_finished where id = %s", head.id)
        }
        for key, run in runs.items():
            ended = 0
            if key in went_on:
                ended = chance.choice([0, 1, len(run) // 2, len(run)])
                for claim in run[:ended]:
                    began = time.monotonic()
                    time.sleep(chance.random() * 0.001)
                    self._ran(claim, keys, began)
                self._write(session, chance, "complete", run[:ended])
            rest = run[ended:]
            if rest and key in went_on and chance.random() < 0.5:
                began = time.monotonic()
                time.sleep(chance.random() * 0.001)
                self._ran(rest[0], keys, began)
                verb = chance.choice(["retry", "retry later", "snooze"])
                self._write(session, chance, verb, rest[:1])
                rest = rest[1:]
            self._write(session, chance, "release", rest)

    def _end(self, session: Session, chance: random.Random, claims: list[Claimed]) -> None:
        began = time.monotonic()
        keys = self._keys(session, claims)
        time.sleep(chance.random() * 0.005)
        for claim in claims:
            self._ran(claim, keys, began)
        by_verb: dict[str, list[Claimed]] = {}
        for claim in claims:
            verb = chance.choices(list(VERBS), weights=list(WEIGHTS))[0]
            by_verb.setdefault(verb, []).append(claim)
        for verb, batch in by_verb.items():
            self._write(session, chance, verb, batch)

    def _keys(self, session: Session, claims: list[Claimed]) -> dict[object, str | None]:
        rows = session.rows(
            "select id, key from jobs where id = any(%s)", [claim.id for claim in claims]
        )
        return {row["id"]: row["key"] for row in rows}

    def _ran(self, claim: Claimed, keys: dict[object, str | None], began: float) -> None:
        run = Run(claim.id, claim.job_type, keys.get(claim.id), began, time.monotonic())
        self.history.runs.append(run)

    def _write(
        self, session: Session, chance: random.Random, verb: str, batch: list[Claimed]
    ) -> None:
        moved: set[object] = set()
        more: list[Claimed] = []
        with suppress(*EXPECTED):  # such a job is recovered later
            if batch and verb == "complete" and chance.random() < 0.5:
                stale, more = session.complete_and_claim(batch, *RULES)
                moved |= {claim.id for claim in batch} - stale
            else:
                moved = VERBS[verb](session, batch)
        self.history.lost |= {claim.id for claim in batch} - set(moved)
        if more:
            self._end(session, chance, more)

    def _meddle(self, session: Session, chance: random.Random, _: int) -> None:
        while not self._produced.is_set():
            jobs = session.column("select id from jobs_live order by random() limit 3")
            try:
                with session.transaction() if chance.random() < 0.8 else session.rolled_back():
                    match chance.randrange(6):
                        case 0:
                            self.history.lost |= set(jobs[:1])
                            session.cancel(*jobs[:1])
                        case 1:
                            session.rows("select howdah.reprioritise(%s, 150)", jobs)
                        case 2:
                            session.execute(
                                "select from jobs_live where admission = 'slot' "
                                "order by arrival limit 5 for update skip locked"
                            )
                            time.sleep(0.03)
                        case 3 if jobs:
                            self.history.lost |= set(jobs[:1])
                            session.plain("UPDATE jobs SET status='completed' WHERE id=$1", jobs[0])
                        case 4 if jobs:
                            self.history.lost |= set(jobs[:1])
                            session.plain("DELETE FROM jobs WHERE id=$1", jobs[0])
                        case _:
                            session.rows("select howdah.run_now(%s)", jobs)
            except EXPECTED:
                continue
            time.sleep(0.01)

    def _keep_up(self, session: Session, chance: random.Random, _: int) -> None:
        while not self._drained.is_set():
            # fair keys get wider and narrower
            told = {"slots": chance.choice([1, 1, 2, 8]), "job_types": ["fair", "fair limited"]}
            session.rows("select howdah.beat('slots', p_info => %s)", Jsonb(told))
            with suppress(*EXPECTED):
                session.rows("select * from howdah.upkeep('1 second')")
            time.sleep(0.05)

    def _observe(self, session: Session, _: random.Random, __: int) -> None:
        while not self._drained.is_set():
            self.history.looks += session.column(
                """
                select format('%%s jobs of %%s %%s hold a slot', count(*), j.job_type, j.key)
                from jobs_live as j join type_limits as r on r.job_type = j.job_type
                where j.key is not null and r.at_once is not null and not r.fair
                  and j.admission < 'slot'
                  and (j.worker_id is null or j.ready_at is not null)  -- not behind another one
                group by j.job_type, j.key, r.at_once having count(*) > r.at_once
                union all
                select format('%%s jobs hold a slot of %%s', count(*), l.name)
                from jobs_live as j join limits as l on l.name = j.limited_by
                where j.admission = 'admitted'
                group by l.name, l.at_once having count(*) > l.at_once
                union all
                select format('%%s workers have a run of %%s %%s',
                              count(distinct worker_id), job_type, key)
                from jobs_live where worker_id is not null and ready_at is null
                group by job_type, key having count(distinct worker_id) > 1
                union all
                select format('job %%s is %%s and %%s', id, admission, status) from jobs_live
                where admission <> 'admitted' and (ready_at is not null or worker_id is not null)
                """.replace("%%", "%")
            )
            time.sleep(0.003)


VERBS: dict[str, Callable[[Session, list[Claimed]], set[object]]] = {
    "complete": lambda s, claims: set(s.complete(claims)),
    "fail": lambda s, claims: set(s.fail(claims)),
    "retry": lambda s, claims: set(s.retry(claims)),
    "retry later": lambda s, claims: set(s.retry(claims, delay=timedelta(milliseconds=50))),
    "release": lambda s, claims: set(s.release(claims)),
    "snooze": lambda s, claims: set(s.release(claims, timedelta(milliseconds=50))),
}
WEIGHTS = (60, 5, 10, 10, 7, 8)
