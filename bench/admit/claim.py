"""Claim: what a claim reads beside many jobs that wait for one key, and without them.

Two databases have the same plain jobs in line. In one, many jobs of the same type wait for a key.
Both claim in turns. The pages that a claim reads say what it costs on any machine.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import psycopg

from bench.admit.variants import Variant
from bench.server import Postgres

BATCH = 50
WARM_UP = 2  # claims of each session that do not count
LOADED_AT_ONCE = 100_000
PLAIN_JOBS = """
    insert into howdah.jobs (job_type, data)
    select 'handle', jsonb_build_object('number', n, 'rest', repeat('x', 76), 'key', 'none')
    from generate_series(1, %s) as n
"""
CLAIM = """
    explain (analyze, buffers, format json)
    select * from howdah.claim_job_batch('bench', array['handle'], %s)
"""


def beside_waiting(
    variant: Variant, waiting: int, claims: int, postgres: Postgres
) -> list[dict[str, float]]:
    """Return pages and milliseconds of a claim, with and without waiting jobs, turn by turn."""
    jobs = BATCH * (claims + WARM_UP)
    with (
        _claimer(variant, 0, jobs, postgres) as free,
        _claimer(variant, waiting, jobs, postgres) as crowded,
    ):
        for _ in range(WARM_UP):
            _claim(free)
            _claim(crowded)
        return [_turn(free, crowded, crowded_first=nth % 2 == 0) for nth in range(claims)]


def _turn(
    free: psycopg.Connection, crowded: psycopg.Connection, *, crowded_first: bool
) -> dict[str, float]:
    order = (
        {"beside": crowded, "alone": free} if crowded_first else {"alone": free, "beside": crowded}
    )
    values: dict[str, float] = {}
    for name, connection in order.items():
        values[f"{name}_pages"], values[f"{name}_ms"] = _claim(connection)
    return values


@contextmanager
def _claimer(
    variant: Variant, waiting: int, jobs: int, postgres: Postgres
) -> Generator[psycopg.Connection]:
    """Yield a session of a database with jobs in line, and others that wait for one key."""
    with variant.prepared(postgres) as prepared:
        for first in range(0, waiting, LOADED_AT_ONCE):
            prepared.run("enqueue_bulk", min(LOADED_AT_ONCE, waiting - first))
        with psycopg.connect(
            prepared.store.address, autocommit=True, prepare_threshold=None
        ) as connection:
            connection.execute(PLAIN_JOBS, [jobs])
            connection.execute("select howdah.admit()")
            prepared.store.make_quiet(vacuum=True)
            yield connection


def _claim(connection: psycopg.Connection) -> tuple[float, float]:
    """Claim once; return how many pages were read, and how many milliseconds it took."""
    row = connection.execute(CLAIM, [BATCH]).fetchone()
    assert row is not None
    explained: dict[str, Any] = row[0][0]
    plan: dict[str, Any] = explained["Plan"]
    if plan["Actual Rows"] != BATCH:
        raise AssertionError(f"a claim got {plan['Actual Rows']} jobs, not {BATCH}")
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"], explained["Execution Time"]
