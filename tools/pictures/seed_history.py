"""Seed history: a week of measures and a day of failures, made with the clock set back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta

import asyncpg
import msgspec

from howdah import Queue
from howdah.histogram import cell_of

MINUTES = 75
QUARTERS = 7 * 24 * 4
AWAY = range(300, 330)  # quarters of an hour ago without a worker
RATES = {"send_mail": 4200, "resize_image": 380, "charge_card": 90, "nightly_report": 2}
FAILED_PER_HOUR = (0, 0, 1, 0, 0, 2, 0, 0, 0, 1, 3, 6, 9, 12, 7, 4, 2, 2, 1, 0, 0, 1, 2, 3)


async def seed_history(queue: Queue) -> None:
    """Write the history of a shop that has been open for a week."""
    async with queue.store.acquire() as connection:
        try:
            for hour, jobs in enumerate(reversed(FAILED_PER_HOUR)):
                if jobs and hour:
                    await connection.execute(f"set howdah.clock_offset = '-{hour} hours'")
                    for n in range(jobs):
                        await connection.execute(_ENQUEUE, 7000 + 20 * hour + n)
                    await connection.execute(_FAIL, jobs)
            for quarter in range(QUARTERS, 4, -1):
                if quarter not in AWAY:
                    await _minute(connection, 15 * quarter)
            for minute in range(MINUTES, -1, -1):
                await _minute(connection, minute)
            await connection.execute("set howdah.clock_offset = '0'")
            await connection.fetchval("select howdah.compact_measures()")
        finally:
            await connection.execute("reset howdah.clock_offset")


async def _minute(connection: asyncpg.Connection[asyncpg.Record], ago: int) -> None:
    """Write the measures and the waiting jobs of one minute, so many minutes ago."""
    back = timedelta(minutes=ago, seconds=20)
    await connection.execute(f"set howdah.clock_offset = '-{back.total_seconds():.0f} seconds'")
    measures = msgspec.json.encode(_measures(ago)).decode()
    await connection.execute("select howdah.record_measures('web-1', $1::jsonb)", measures)
    await connection.execute(_WAIT, [*RATES, ""], [*_waiting(ago), sum(_waiting(ago))])
    if ago % 60 == 0:
        await connection.execute("select howdah.compact_measures()")


_WAIT = """
insert into howdah.measure_history (at, step, job_type, waiting)
select date_trunc('minute', howdah.clock()), '1 minute', w.job_type, w.jobs
from unnest($1::text[], $2::bigint[]) as w (job_type, jobs)
"""
_ENQUEUE = "select howdah.enqueue('charge_card', jsonb_build_object('order', $1::int))"
_FAIL = """
select howdah.fail('web-0', array_agg(id), array_agg(attempts),
    array_agg('TimeoutError: payment gateway did not answer within 10 s'::text))
from howdah.claim_job_batch('web-0', array['charge_card'], $1)
"""


def _wave(minute: int) -> float:
    """Return the load so many minutes ago: higher by day, with some noise."""
    day = 0.65 - 0.5 * math.cos(2 * math.pi * minute / 1440 + 1.2)
    return day * (1 + 0.25 * math.sin(minute / 7) + 0.15 * math.sin(minute * 1.7))


def _waiting(minute: int) -> list[int]:
    """Return how many jobs of each type were in line."""
    rush = 6 if 20 <= minute <= 34 or 700 <= minute <= 900 else 1
    return [round(rate * _wave(minute) * rush / 9) for rate in RATES.values()]


def _measures(minute: int) -> list[dict[str, object]]:
    wave = _wave(minute)
    waited = 0.002 if max(_waiting(minute)) < 2000 else 0.9
    rows: list[dict[str, object]] = []
    for job_type, rate in RATES.items():
        jobs = round(rate * wave)
        bad = round(jobs * 0.12 * (1 + math.sin(minute / 23))) if job_type == "charge_card" else 0
        run = {"send_mail": 0.08, "resize_image": 0.9, "charge_card": 0.6, "nightly_report": 48.0}
        rows.append(
            {
                "job_type": job_type,
                "completed": jobs - bad,
                "retried": bad,
                "pickup": _cells(jobs, waited),
                "pickup_seconds": jobs * waited,
                "run": _cells(jobs, run[job_type]),
                "run_seconds": jobs * run[job_type],
            }
        )
    return rows


def _cells(jobs: int, seconds: float) -> Sequence[int]:
    """Return a histogram: most jobs take about so long, some longer."""
    cells = [0] * (cell_of(seconds) + 6)
    middle = cell_of(seconds)
    for shift, share in ((-1, 0.2), (0, 0.5), (1, 0.2), (2, 0.07), (5, 0.03)):
        cells[middle + shift] += round(jobs * share)
    return cells
