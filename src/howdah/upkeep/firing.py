"""Firing: fire the schedules that are due.

Comes after  upkeep.py  which knows that one is due
In SQL       sql/37_schedules/

This worker computes the times of each schedule and sends them with what it has read. The database
fires a schedule only if nobody else has done so, so workers need not agree who does it.
"""

from __future__ import annotations

from howdah.errors import BadInput, HowdahError
from howdah.safe_logging import log_named
from howdah.store import Store
from howdah.store import schedules as store_schedules
from howdah.store.errors import transient
from howdah.store.schedules import Due, Fired, Firing
from howdah.text.reasons import describe
from howdah.timing import IN_TIME, MOST_MISSED, Timing, check_timing

_log = log_named("howdah.schedules")

BATCH = 100  # schedules that one transaction fires at most


async def fire_due(store: Store) -> int:
    """Fire the schedules that are due; returns how many this worker has moved."""
    moved = 0
    while due := await store_schedules.due_schedules(store, BATCH):
        try:
            fired = await store_schedules.fire_schedules(store, [compute(each) for each in due])
        except HowdahError as error:
            if transient(error):
                raise
            _log.error("schedule.refused error=%s", error)
            return moved
        for each in fired:
            _report(each)
        moved += len(fired)
        if len(due) < BATCH or not fired:
            break
    return moved


def _report(fired: Fired) -> None:
    if fired.problem is not None:
        _log.error("schedule.problem name=%s error=%s", fired.name, fired.problem)
    elif fired.skipped:
        _log.info("schedule.skipped name=%s", fired.name)
    elif fired.jobs:
        _log.info("schedule.fired name=%s jobs=%d", fired.name, fired.jobs)


def compute(due: Due) -> Firing:
    """Compute for which times a schedule fires now, and its next firing."""
    try:
        return _compute(due)
    except Exception as error:  # whatever an expression that somebody wrote with SQL raises
        return Firing(
            name=due.name,
            version=due.version,
            expected=due.next_firing,
            problem=_problem(due, error)[:2000],
        )


def _problem(due: Due, error: Exception) -> str:
    """Say what is wrong, as a caller is told who sets such a schedule in Python."""
    try:
        check_timing(due.cron, due.every, due.tz)
    except BadInput as refused:
        return str(refused)
    return describe(error)


def _compute(due: Due) -> Firing:
    timing = Timing(due.cron, due.every, due.tz)
    first, now = due.next_firing, due.now
    if first is None:
        times, after = [], timing.following(due.counts_from)
    else:
        times = timing.newest(first, now, MOST_MISSED if due.missed == "all" else 1)
        if due.missed == "skip" and times and now - times[-1] > IN_TIME:
            times = []
        after = timing.after(first, now)
    return Firing(
        name=due.name,
        version=due.version,
        expected=first,
        times=times,
        next="infinity" if after is None else after,
    )
