"""Roster: every bad day, in the order of the report."""

from __future__ import annotations

from bench.bad_days.crowded import DUE_LATER, FINISHED, OTHER_TYPES
from bench.bad_days.held import CURSOR, SNAPSHOT, WRITER
from bench.bad_days.idle_waits import IDLE_WAITS
from bench.bad_days.mixed import MIXED_JOBS
from bench.bad_days.never_analysed import NEVER_ANALYSED
from bench.bad_days.varied import MANY_PRIORITIES, MANY_TYPES, SCATTERED_TYPES

CASES = {
    case.name: case
    for case in (
        SNAPSHOT,
        WRITER,
        CURSOR,
        OTHER_TYPES,
        DUE_LATER,
        FINISHED,
        MANY_PRIORITIES,
        MANY_TYPES,
        SCATTERED_TYPES,
        NEVER_ANALYSED,
        MIXED_JOBS,
        IDLE_WAITS,
    )
}
