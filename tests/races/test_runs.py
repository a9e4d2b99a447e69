"""A run of one ordered key, two and three sessions: every order of their statements is right.

What ends or puts back its jobs, and what claims a run, meet each other. At every commit one job
holds the slot, or one run; at the end all jobs that are left run in the order of enqueueing.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import combinations

import pytest

from tests.admit.broken import break_engine
from tests.races.test_admit import (
    RULES,
    Race,
    Races,
    Start,
    Write,
    admit,
    cancel_waiting,
    database,
    enqueue,
    races,
)
from tests.support import Database, Session

__all__ = ["database", "races"]

pytestmark = [pytest.mark.engine, pytest.mark.slow]

PUT_BACK = "UPDATE jobs SET status='pending', worker_id=NULL, claimed_at=NULL WHERE id=$1"


def claim_run(session: Session, on: Start) -> object:
    return session.claim_run(on.held)


def set_rule(session: Session, _: Start) -> object:
    session.execute("select howdah.set_type_limit('mail', 1, false)")
    return session.execute("select howdah.set_type_limit('mail', 1, true)")


# what happens to a run of two: their worker's own writes do not depend on each other
RUN: dict[str, Write] = {
    "complete the head": lambda s, on: s.complete(on.held),
    "retry the head": lambda s, on: s.retry(on.held),
    "cancel the head": lambda s, on: s.cancel(on.held[0].id),
    "complete all": lambda s, on: s.complete([*on.held, *on.run]),
    "complete the run": lambda s, on: s.complete(on.run),
    "release the run": lambda s, on: s.release(on.run),
    "retry the first": lambda s, on: s.retry(on.run[:1]),
    "cancel the first": lambda s, on: s.cancel(on.run[0].id),
    "put the head back": lambda s, on: s.plain(PUT_BACK, on.held[0].id),
    "put the first back": lambda s, on: s.plain(PUT_BACK, on.run[0].id),
    "recover": lambda s, _: s.rows("select * from howdah.recover_stale_jobs()"),
    "enqueue": enqueue,
    "admit": admit,
}
# what meets the claim of a run
HEAD: dict[str, Write] = {
    "complete": lambda s, on: s.complete(on.held),
    "retry": lambda s, on: s.retry(on.held),
    "release": lambda s, on: s.release(on.held),
    "cancel": lambda s, on: s.cancel(on.held[0].id),
    "put back": lambda s, on: s.plain(PUT_BACK, on.held[0].id),
    "cancel the next": cancel_waiting,
    "enqueue": enqueue,
    "admit": admit,
    "set the rule": set_rule,
    "another claim of the run": claim_run,
}


@pytest.mark.parametrize("write", HEAD)
def test_the_claim_of_a_run_and_another_write(races: Races, write: str) -> None:
    for commits in (True, False):
        put_back = commits and write == "put back"
        writes = [(claim_run, True), (HEAD[write], commits)]
        races["ordered"].check(1, 2, writes, put_back=put_back)


@pytest.mark.parametrize(("first", "second"), list(combinations(RUN, 2)))
def test_two_writes_to_a_run(races: Races, first: str, second: str) -> None:
    for waiting in (0, 1):
        races["ordered"].check(1, waiting, [(RUN[first], True), (RUN[second], True)], follow=2)


def complete_two(session: Session, on: Start) -> object:
    return session.complete([*on.held, *on.run[:1]])


LAST: dict[str, Write] = {
    "release": lambda s, on: s.release(on.run[1:]),
    "retry": lambda s, on: s.retry(on.run[1:]),
    "snooze": lambda s, on: s.release(on.run[1:], timedelta(milliseconds=1)),
    "hand_back": lambda s, on: s.hand_back(on.run[1:]),
    "cancel": lambda s, on: s.cancel(on.run[1].id),
}


@pytest.mark.parametrize("last", LAST)
def test_the_last_of_a_run_goes_back_while_the_others_end(races: Races, last: str) -> None:
    for waiting in (0, 1):
        races["ordered"].check(1, waiting, [(complete_two, True), (LAST[last], True)], follow=2)


WITH_A_LOOK = ["complete the head", "release the run", "retry the first"]


@pytest.mark.parametrize("write", WITH_A_LOOK)
def test_the_end_of_a_run_another_write_and_a_look(races: Races, write: str) -> None:
    ends = "complete the run" if write == "complete the head" else "complete the head"
    writes = [(RUN[ends], True), (RUN[write], True), (admit, True)]
    races["ordered"].check(1, 1, writes, follow=2)


FOUND = {
    "a run does not check its head": [(claim_run, True), (HEAD["put back"], True)],
    "a slot goes on before the last of a run has ended": [
        (RUN["complete the head"], True),
        (enqueue, True),
    ],
    "an end of a run leaves all to another end": [
        (RUN["complete the head"], True),
        (RUN["complete the run"], True),
    ],
    "jobs of a run that go back request no look": [
        (complete_two, True),
        (LAST["release"], True),
    ],
}


@pytest.mark.parametrize("what", FOUND)
def test_a_broken_engine_is_found(database: Database, what: str) -> None:
    break_engine(database, what)
    follow = 0 if what == "a run does not check its head" else 2
    race = Race(database, RULES["ordered"])
    waiting = 0 if what == "jobs of a run that go back request no look" else 1
    with pytest.raises(AssertionError):
        race.check(1, waiting, FOUND[what], follow=follow, put_back=not follow)
