"""Rate: starts per second under a rate, and by how many they exceed it in any window.

A start is the claim of a job (`claimed_at`), as the documentation says. There are two workers, and
more jobs wait than may start. `look_ms` is what a call of howdah.admit takes.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import pairwise

import psycopg
from psycopg import sql

from bench.admit.exactness import most_above
from bench.admit.variants import Variant
from bench.adverse.open_transaction import snapshot_held
from bench.measure.workers import Workers, start_workers
from bench.peer import Plan
from bench.server import Postgres

PROCESSES = 2
WINDOWS = 6  # parts of the time, each with a mean
SPARE = 5  # seconds for which more jobs wait
SAMPLE_EVERY = 1.0
STARTS = """
    select date_part('epoch', claimed_at) from howdah.jobs where claimed_at is not null order by 1
"""
LOOKS = """
    select coalesce(sum(calls), 0), coalesce(sum(total_time), 0) from pg_stat_user_functions
    where schemaname = 'howdah' and funcname = 'admit'
"""

Look = tuple[float, float]  # how often howdah.admit was called, and how many milliseconds it took


def starts_per_second(
    variant: Variant, seconds: float, postgres: Postgres, *, held: bool
) -> list[dict[str, float]]:
    """Return the mean of each part of the time; the last has what holds for all of it."""
    rate = variant.rule.slots
    plan = Plan(int(rate * (seconds + SPARE)), processes=PROCESSES)
    with variant.prepared(postgres) as prepared:
        _track_functions(prepared.store.address)
        prepared.run("enqueue_bulk", plan.jobs)
        with start_workers(plan, prepared) as workers:
            prepared.store.make_quiet(vacuum=True)
            with _snapshot(prepared.store.address, held=held):
                workers.start()
                looks = _sample(workers, prepared.store.address, seconds)
        with psycopg.connect(prepared.store.address) as connection:
            starts = [row[0] for row in connection.execute(STARTS)]
    parts = parts_of(starts, seconds)
    parts[-1] |= {"above": round(most_above(starts, rate), 2), **look_costs(looks)}
    return parts


def _snapshot(address: str, *, held: bool) -> AbstractContextManager[None]:
    return snapshot_held(address) if held else nullcontext()


def _track_functions(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("alter database {} set track_functions = 'all'").format(name))


def _sample(workers: Workers, address: str, seconds: float) -> list[Look]:
    with _connected(address) as connection:
        workers.wait_for_calls(1)
        until = time.monotonic() + seconds
        looks = [_look(connection)]
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(SAMPLE_EVERY, left))
            looks.append(_look(connection))
            for process in workers.processes:
                process.check_alive()
    return looks


@contextmanager
def _connected(address: str) -> Generator[psycopg.Connection]:
    with psycopg.connect(address, autocommit=True) as connection:
        yield connection


def _look(connection: psycopg.Connection) -> Look:
    row = connection.execute(LOOKS).fetchone()
    assert row is not None
    return float(row[0]), float(row[1])


def look_costs(looks: list[Look]) -> dict[str, float]:
    """Return the milliseconds of a look in the first and in the last third of the time."""
    third = max(1, len(looks) // 3)
    first, last = (looks[0], looks[third]), (looks[-1 - third], looks[-1])
    return {
        name: round((end[1] - begin[1]) / (end[0] - begin[0]), 3)
        for name, (begin, end) in (("look_ms", first), ("late_look_ms", last))
        if end[0] > begin[0]
    }


def parts_of(starts: list[float], seconds: float) -> list[dict[str, float]]:
    """Return the starts per second in parts of equal length, from the first start on."""
    edges = [starts[0] + seconds * nth / WINDOWS for nth in range(WINDOWS + 1)]
    return [
        {"mean": round(sum(since <= at < until for at in starts) / (until - since), 2)}
        for since, until in pairwise(edges)
    ]
