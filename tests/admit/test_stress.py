"""A stress keeps every promise of admission, and an engine that is broken on purpose does not."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.admit.broken import break_engine
from tests.admit.history import check
from tests.admit.stress import Stress
from tests.support import Database
from tests.support.databases import Databases

pytestmark = [pytest.mark.engine, pytest.mark.slow]


@pytest.fixture
def database(databases: Databases) -> Generator[Database]:
    """A database without the guard, in which plain SQL may delete a live job."""
    dsn = databases.create()
    db = Database(dsn)
    yield db
    db.close()
    databases.drop(dsn)


@pytest.mark.parametrize("seed", range(3))
def test_a_stress_keeps_every_promise(database: Database, seed: int) -> None:
    assert check(Stress(database.dsn, seed).run()) == []
    database.admit_all()
    assert database.value("select count(*) from jobs_live") == 0


def test_a_stress_keeps_every_promise_beside_a_held_snapshot(database: Database) -> None:
    """Hand-overs search only behind the jobs that have ended."""
    database.execute("select setval('howdah.search_behind_until', 32503680000000)")
    assert check(Stress(database.dsn, 0).run()) == []
    database.admit_all()
    assert database.value("select count(*) from jobs_live") == 0


# the others are found in every order of two sessions: tests/races/test_admit.py
FOUND = [
    "no admission lock",
    "a hand-over skips a locked head",
    "a retry gives an ordered slot away",
    "an end hands nothing over",
    "a slot goes on before the last of a run has ended",
    "the rest of a run goes back into the line",
]


@pytest.mark.timeout(900)  # most are found at once
@pytest.mark.parametrize("what", FOUND)
def test_a_broken_engine_is_found(database: Database, what: str) -> None:
    break_engine(database, what)
    for seed in range(25):
        if check(Stress(database.dsn, seed).run()):
            return
        database.execute("delete from jobs; delete from admission_requests")
    pytest.fail(f"{what}: nothing was found")
