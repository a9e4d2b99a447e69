"""Sixteen sessions claim at once: each job once per attempt, in order, and none is lost."""

from __future__ import annotations

import random
import threading
from collections import Counter
from uuid import UUID

import pytest

from howdah.states import State
from tests.support import Database, Session
from tests.support.background import BackgroundCall

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


class Claimers:
    """Sessions that claim and settle until no job is left, and record every claim."""

    def __init__(self, db: Database, *, plain: bool) -> None:
        self.db = db
        self.plain = plain
        self.claimed: list[tuple[UUID, int]] = []
        self.lock = threading.Lock()
        self.start = threading.Barrier(SESSIONS)

    def run(self) -> None:
        sessions = [self.db.session() for _ in range(SESSIONS)]
        for call in [
            BackgroundCall(lambda s=s, n=n: self.work(s, n)) for n, s in enumerate(sessions)
        ]:
            call.result()

    def work(self, session: Session, number: int) -> None:
        rng = random.Random(number)
        session.execute("set synchronous_commit = off")
        self.start.wait()
        while True:
            claims = session.claim(*TYPES, worker=f"worker-{number}", batch=rng.randint(1, 20))
            if not claims:
                if not session.value("select exists (select from jobs_live)"):
                    return
                continue
            with self.lock:
                self.claimed += [(claim.id, claim.attempts) for claim in claims]
            order = [claim.priority for claim in claims]
            assert order == sorted(order, reverse=True)
            retried = [claim for claim in claims if claim.attempts == 1 and rng.random() < 0.2]
            ended = [claim for claim in claims if claim not in retried]
            if retried:
                session.retry(retried)
            if self.plain and number % 2:
                for claim in ended:
                    session.plain(
                        "UPDATE jobs SET status='completed', progress=100, completed_at=now() "
                        "WHERE id=$1",
                        claim.id,
                    )
            elif ended:
                assert session.complete(ended) == {claim.id for claim in ended}


@pytest.mark.parametrize("plain", [False, True], ids=["our verbs", "half of them plain UPDATEs"])
def test_each_job_is_claimed_once_per_attempt_and_none_is_lost(db: Database, plain: bool) -> None:
    fill(db, 1500)
    claimers = Claimers(db, plain=plain)
    claimers.run()

    rows = db.rows("select id, status, attempts from jobs")
    assert len(rows) == 1500
    assert {row["status"] for row in rows} == {State.COMPLETED}
    attempts = Counter(
        {(row["id"], attempt): 1 for row in rows for attempt in range(1, row["attempts"] + 1)}
    )
    assert Counter(claimers.claimed) == attempts
    assert max(attempt for _, attempt in attempts) == 2
    assert db.depth() == db.counted()
