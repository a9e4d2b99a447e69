"""Sixteen sessions claim at once: each job once per attempt, in order, none lost, none left."""

from __future__ import annotations

import random
import threading
from collections import Counter
from uuid import UUID

import pytest

from howdah.states import State
from tests.support import Database, Session
from tests.support.aside import Aside

pytestmark = pytest.mark.engine

SESSIONS = 16
TYPES = ("mail", "resize", "index")


def fill(db: Database, jobs: int) -> None:
    db.execute(
        "insert into jobs (job_type, priority, max_attempts, data) "
        "select ('{mail,resize,index}'::text[])[1 + n %% 3], (n %% 5) * 10, 10, "
        "jsonb_build_object('n', n) from generate_series(1, %s) as n",
        jobs,
    )


class Crowd:
    """Sessions that claim and settle until nothing is left, and note what they were handed."""

    def __init__(self, db: Database, *, plain: bool) -> None:
        self.db = db
        self.plain = plain
        self.handed: list[tuple[UUID, int]] = []
        self.lock = threading.Lock()
        self.start = threading.Barrier(SESSIONS)

    def run(self) -> None:
        sessions = [self.db.session() for _ in range(SESSIONS)]
        for aside in [Aside(lambda s=s, n=n: self.work(s, n)) for n, s in enumerate(sessions)]:
            aside.result()

    def work(self, session: Session, number: int) -> None:
        dice = random.Random(number)
        session.execute("set synchronous_commit = off")
        self.start.wait()
        while True:
            claims = session.claim(*TYPES, worker=f"worker-{number}", batch=dice.randint(1, 20))
            if not claims:
                if not session.value("select exists (select from jobs_live)"):
                    return
                continue
            with self.lock:
                self.handed += [(claim.id, claim.attempts) for claim in claims]
            order = [claim.priority for claim in claims]
            assert order == sorted(order, reverse=True)
            again = [claim for claim in claims if claim.attempts == 1 and dice.random() < 0.2]
            done = [claim for claim in claims if claim not in again]
            if again:
                session.retry(again)
            if self.plain and number % 2:
                for claim in done:
                    session.plain(
                        "UPDATE jobs SET status='completed', progress=100, completed_at=now() "
                        "WHERE id=$1",
                        claim.id,
                    )
            elif done:
                assert session.complete(done) == {claim.id for claim in done}


@pytest.mark.parametrize("plain", [False, True], ids=["our verbs", "half of them plain UPDATEs"])
def test_each_job_is_handed_out_once_per_attempt_and_none_is_lost(
    db: Database, plain: bool
) -> None:
    fill(db, 1500)
    crowd = Crowd(db, plain=plain)
    crowd.run()

    rows = db.rows("select id, status, attempts from jobs")
    assert len(rows) == 1500
    assert {row["status"] for row in rows} == {State.COMPLETED}
    attempts = Counter(
        {(row["id"], attempt): 1 for row in rows for attempt in range(1, row["attempts"] + 1)}
    )
    assert Counter(crowd.handed) == attempts
    assert max(attempt for _, attempt in attempts) == 2
    assert db.depth() == db.counted()
