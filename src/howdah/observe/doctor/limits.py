"""Limits: named limits that hold jobs back while nothing is at work under them."""

from __future__ import annotations

from datetime import datetime, timedelta

from howdah.observe.doctor.check import Check, Examination, Level
from howdah.observe.limits import NamedLimit, named_limits
from howdah.store import Store, query
from howdah.text.wording import jobs, length, waiting

IDLE = timedelta(minutes=1)  # that jobs may wait while nothing is at work
CAP = 1000  # jobs of a limit that are counted


async def _limits(store: Store, within: timedelta) -> list[Check]:
    now: datetime = await query.fetchval(store, within, "select howdah.clock()")
    named = await named_limits(store, within=within, cap=CAP)
    idle = [
        (since, limit) for limit in named if (since := idle_since(limit)) and since < now - IDLE
    ]
    if not idle:
        return [
            Check(
                name="limits",
                level=Level.FINE,
                sentence="No limit holds jobs back while nothing is at work.",
                value=0,
                unit="limits",
            )
        ]
    since, limit = min(idle, key=lambda found: found[0])
    if limit.admitted:
        sentence = (
            f"{jobs(limit.admitted)} {'holds' if limit.admitted.jobs == 1 else 'hold'} "
            f"slots of the limit {limit.name} and none is at work, the first for "
            f"{length(now - since)}; {waiting(limit.waiting)}"
        )
        advice = (
            "No worker is free for these jobs, or none knows their types. Start one, or pause "
            "the types that should not run: a paused type leaves the limit to others."
        )
    else:
        sentence = (
            f"{waiting(limit.waiting)} for the limit {limit.name}, the first for "
            f"{length(now - since)}, and no job holds a slot"
        )
        advice = "Workers admit jobs, one at a time. Start a worker, or call howdah.admit()."
    more = f" ({len(idle) - 1} more limits are idle, too)" if len(idle) > 1 else ""
    return [
        Check(
            name="limits",
            level=Level.WARNING,
            sentence=f"{sentence}{more}.",
            advice=advice,
            value=len(idle),
            unit="limits",
        )
    ]


def idle_since(limit: NamedLimit) -> datetime | None:
    """Return since when jobs wait although nothing is at work; None: that is as it should be."""
    if not limit.waiting or limit.at_work or limit.admitted is None or limit.admitted.more:
        return None
    if limit.admitted:
        return limit.in_line_since
    if limit.rate is not None and (limit.per_key or limit.next_start_at is not None):
        return None  # the rate is used up, or may be, of some key
    return limit.waits_since


EXAMINATIONS: dict[str, Examination] = {"limits": _limits}
