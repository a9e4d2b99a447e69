"""Past: an hour of measures and a day of failures, by the engine with its clock set back."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from howdah import Queue
from howdah.observe.histogram import cell_of

MINUTES = 60
RATES = {"send_mail": 4200, "resize_image": 380, "charge_card": 90, "nightly_report": 2}
FAILED_PER_HOUR = (0, 0, 1, 0, 0, 2, 0, 0, 0, 1, 3, 6, 9, 12, 7, 4, 2, 2, 1, 0, 0, 1, 2, 3)


async def write_past(queue: Queue) -> None:
    """Make it look as if the shop had been open since yesterday."""
    async with queue.store.acquire() as connection:
        try:
            for hour, jobs in enumerate(reversed(FAILED_PER_HOUR)):
                if jobs and hour:
                    await connection.execute(f"set howdah.clock_offset = '-{hour} hours'")
                    for n in range(jobs):
                        await connection.execute(_ENQUEUE, 7000 + 20 * hour + n)
                    await connection.execute(_FAIL, jobs)
            for minute in range(MINUTES, -1, -1):
                await connection.execute(f"set howdah.clock_offset = '-{minute * 60 + 20} seconds'")
                said = msgspec.json.encode(_measures(minute)).decode()
                await connection.execute("select howdah.measure('web-1', $1::jsonb)", said)
        finally:
            await connection.execute("reset howdah.clock_offset")


_ENQUEUE = "select howdah.enqueue('charge_card', jsonb_build_object('order', $1::int))"
_FAIL = """
select howdah.fail('web-0', array_agg(id), array_agg(attempts),
    array_agg('TimeoutError: payment gateway did not answer within 10 s'::text))
from howdah.claim_job_batch('web-0', array['charge_card'], $1)
"""


def _measures(minute: int) -> list[dict[str, object]]:
    wave = 1 + 0.5 * math.sin(minute / 7) + 0.2 * math.sin(minute * 1.7)
    found: list[dict[str, object]] = []
    for job_type, rate in RATES.items():
        jobs = round(rate * wave)
        bad = round(jobs * 0.12 * (1 + math.sin(minute / 3))) if job_type == "charge_card" else 0
        run = {"send_mail": 0.08, "resize_image": 0.9, "charge_card": 0.6, "nightly_report": 48.0}
        found.append(
            {
                "job_type": job_type,
                "completed": jobs - bad,
                "retried": bad,
                "pickup": _cells(jobs, 0.002),
                "pickup_seconds": jobs * 0.003,
                "run": _cells(jobs, run[job_type]),
                "run_seconds": jobs * run[job_type],
            }
        )
    return found


def _cells(jobs: int, seconds: float) -> Sequence[int]:
    """Most take about so long, some longer."""
    cells = [0] * (cell_of(seconds) + 6)
    middle = cell_of(seconds)
    for shift, share in ((-1, 0.2), (0, 0.5), (1, 0.2), (2, 0.07), (5, 0.03)):
        cells[middle + shift] += round(jobs * share)
    return cells
