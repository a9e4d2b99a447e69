"""Registry: every case, in the order of the report."""

from __future__ import annotations

from bench.adverse.dead_rows import DEAD_ROWS
from bench.adverse.idle_waits import IDLE_WAITS
from bench.adverse.many_lanes import MANY_PRIORITIES, MANY_TYPES, SCATTERED_TYPES
from bench.adverse.mixed import MIXED_JOBS
from bench.adverse.never_analysed import NEVER_ANALYSED
from bench.adverse.open_transaction import OPEN_TRANSACTION
from bench.adverse.server_restart import SERVER_RESTART
from bench.adverse.unrelated_jobs import DUE_LATER, FINISHED, OTHER_TYPES

CASES = {
    case.name: case
    for case in (
        *OPEN_TRANSACTION,
        DEAD_ROWS,
        SERVER_RESTART,
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
