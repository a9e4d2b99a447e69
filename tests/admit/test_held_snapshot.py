"""While another session holds a snapshot, hand-overs search behind the jobs that have ended."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.plans.explain import buffers
from tests.support import Claimed, Database

pytestmark = pytest.mark.engine

COMPLETE = "select howdah.complete('worker', array[%s::uuid], array[%s])"
GONE = 6000
FOREVER = "select setval('howdah.search_behind_until', 32503680000000)"


def one_limit(db: Database) -> None:
    db.execute("select howdah.set_limit('api', 1000)")
    db.execute("select howdah.set_type_limit('mail', null, false, 'api')")


def one_key(db: Database) -> None:
    db.execute("select howdah.set_type_limit('mail', 1000)")


RULES = [one_limit, one_key]


@pytest.mark.plan
@pytest.mark.parametrize("rule", RULES)
def test_a_hand_over_does_not_read_what_has_left(
    db: Database, rule: Callable[[Database], None]
) -> None:
    rule(db)
    holder = db.session()
    holder.execute("begin isolation level repeatable read")
    holder.rows("select from jobs limit 1")
    db.enqueue_many([{"job_type": "mail", "key": "a"}] * (GONE + 3000))
    db.admit_all()

    def costs(claims: list[Claimed]) -> list[int]:
        return [buffers(db, COMPLETE, claim.id, claim.attempts) for claim in claims]

    first = costs(db.claim("mail", batch=10))
    gone = 10
    while gone < GONE:
        claims = db.claim("mail", batch=500)
        gone += len(db.complete(claims))
    found = db.value("select pg_sequence_last_value('howdah.search_behind_until')")
    assert found is not None, "a hand-over has read many entries"
    db.execute(FOREVER)
    later = costs(db.claim("mail", batch=10))
    assert max(later) < 1.5 * min(first[3:])
    holder.execute("rollback")


@pytest.mark.parametrize("rule", RULES)
def test_what_is_before_them_gets_a_slot_at_last(
    db: Database, rule: Callable[[Database], None]
) -> None:
    rule(db)
    db.execute(
        "update limits set at_once = 1; update type_limits set at_once = 1 where at_once > 1"
    )
    db.admit_all()
    late_session = db.session()
    with late_session.transaction():
        late = late_session.enqueue("mail", key="a")
        running, waiting = (db.enqueue("mail", key="a") for _ in range(2))
        db.admit()
    db.admit_all()
    db.execute(FOREVER)
    for job in (running, waiting, late):
        held = db.claim("mail")
        assert [claim.id for claim in held] == [job]
        db.complete(held)
        db.admit_all()


@pytest.mark.parametrize("rule", RULES)
def test_after_that_time_the_most_urgent_job_is_next(
    db: Database, rule: Callable[[Database], None]
) -> None:
    rule(db)
    db.execute(
        "update limits set at_once = 1; update type_limits set at_once = 1 where at_once > 1"
    )
    for _ in range(3):
        db.enqueue("mail", key="a")
    db.admit_all()
    urgent = db.enqueue("mail", key="a", priority=200)
    db.execute(FOREVER)
    db.complete(db.claim("mail"))
    db.execute("select setval('howdah.search_behind_until', 1)")
    held = db.claim("mail")
    assert [claim.id for claim in held] != [urgent]
    db.complete(held)
    assert [claim.id for claim in db.claim("mail")] == [urgent]
