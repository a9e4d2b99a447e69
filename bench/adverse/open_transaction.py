"""Open transaction: a transaction stays open while jobs come and go, in many regimes.

It holds a snapshot, a transaction id or a cursor, so VACUUM cannot remove dead rows. The more of
them there are, the more a claim may have to read. How much, depends on the regime: how fast jobs
come, how long they wait, how many types and priorities there are.

An older form of these cases compared the last minute with the first one under the transaction, and
saw nothing: the loss comes in the first seconds. It also measured claims and not pickups, and sent
jobs in large batches of 50 ms.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager

import psycopg

from bench.adverse.phases import TABLE, Hold, Lengths, Phases, run_phases
from bench.adverse.regime import Regime
from bench.case_record import CaseResult, Finding
from bench.cases import Case, CaseContext
from bench.table_samples import Sample
from bench.testbed import Testbed

CLEAN, RECOVERY = 0.5, 0.5  # minutes
LONG_RECOVERY = (
    2.0  # minutes, where the size of the table is measured: autovacuum comes each minute
)
LARGEST = 64.0  # MB of jobs_live, for 10,000 live jobs
SIZED = 10_000  # jobs in the line of the regime whose table is measured
LAST_LOOK = 3.0  # seconds at the end in which the smallest size counts


def hold_snapshot(testbed: Testbed) -> AbstractContextManager[None]:
    return snapshot_held(testbed.dsn)


@contextmanager
def snapshot_held(dsn: str) -> Generator[None]:
    """Hold a snapshot of a database while the block runs."""
    with psycopg.connect(dsn) as connection:
        connection.execute("set transaction isolation level repeatable read")
        connection.execute("select count(*) from pg_namespace")
        yield
        connection.rollback()


@contextmanager
def hold_transaction_id(testbed: Testbed) -> Generator[None]:
    testbed.execute("create table ledger (entry text)")
    with testbed.connect(autocommit=False) as connection:
        connection.execute("insert into ledger values ('not committed yet')")
        yield
        connection.rollback()


@contextmanager
def hold_cursor(testbed: Testbed) -> Generator[None]:
    with testbed.connect(autocommit=False) as connection:
        connection.execute("declare reading cursor for select * from howdah.jobs")
        connection.execute("fetch 1 from reading")
        yield
        connection.rollback()


def open_transaction(
    name: str, title: str, regime: Regime, hold: Hold = hold_snapshot, minutes: float = 1.0
) -> Case:
    sized = regime.ahead == SIZED

    def run(context: CaseContext) -> CaseResult:
        lengths = Lengths(
            clean=context.seconds(CLEAN),
            stress=context.seconds(minutes),
            recovery=context.seconds(LONG_RECOVERY if sized else RECOVERY),
        )
        with context.testbed() as testbed:
            phases = run_phases(testbed, regime, lengths, hold)
        findings = phases.findings(name, title)
        if sized:
            findings += sizes(name, phases)
        return CaseResult(findings, phases.curves(name, title))

    return Case(name, title, run)


def sizes(name: str, phases: Phases) -> list[Finding]:
    """Return how large jobs_live was before the stress, and at the very end.

    Its indexes are shown beside it, without a bound: an index never becomes smaller, and its empty
    pages are used again.
    """
    lengths = phases.lengths
    end = lengths.stress + lengths.recovery
    before = max(phases.samples_within(-lengths.clean, 0.0), key=_table_bytes)
    largest = max(phases.samples_within(0.0, end), key=_table_bytes)
    last = min(phases.samples_within(end - LAST_LOOK, end + LAST_LOOK), key=_table_bytes)
    return [
        Finding(
            case=name,
            title=f"the same, jobs_live {when} (indexes {_index_bytes(sample) / 1e6:.0f} MB)",
            measured=round(_table_bytes(sample) / 1e6, 1),
            sense="at most",
            bound=LARGEST,
            unit=" MB",
        )
        for when, sample in (
            ("before", before),
            (f"afterwards, {_table_bytes(largest) / 1e6:.0f} MB meanwhile", last),
        )
    ]


def _table_bytes(sample: Sample) -> int:
    return sample.tables[TABLE].table_bytes


def _index_bytes(sample: Sample) -> int:
    return sample.tables[TABLE].index_bytes


_HELD = "a snapshot held for a minute"

OPEN_TRANSACTION = [
    open_transaction("held_100", f"{_HELD}, 100 jobs/s", Regime(rate=100)),
    open_transaction("held_800", f"{_HELD}, 800 jobs/s", Regime(rate=800)),
    open_transaction("held_8000", f"{_HELD}, 8,000 jobs/s", Regime(rate=8000)),
    open_transaction("held_short_line", f"{_HELD}, 1,000 jobs in line", Regime(ahead=1000)),
    open_transaction("held_line", f"{_HELD}, 10,000 jobs in line", Regime(ahead=SIZED)),
    open_transaction("held_long_line", f"{_HELD}, 100,000 jobs in line", Regime(ahead=100_000)),
    open_transaction(
        "held_800_many",
        f"{_HELD}, 800 jobs/s of 20 types and 20 priorities",
        Regime(rate=800, types=20, priorities=20),
    ),
    open_transaction(
        "held_short_line_many",
        f"{_HELD}, 1,000 jobs of 20 types and 20 priorities in line",
        Regime(ahead=1000, types=20, priorities=20),
    ),
    open_transaction(
        "snapshot", "a snapshot held for 10 minutes, 800 jobs/s", Regime(rate=800), minutes=10
    ),
    open_transaction(
        "snapshot_line",
        "a snapshot held for 10 minutes, 1,000 jobs in line",
        Regime(ahead=1000),
        minutes=10,
    ),
    open_transaction(
        "writer",
        "a writer's transaction held for 3 minutes, 8,000 jobs/s",
        Regime(rate=8000),
        hold_transaction_id,
        minutes=3,
    ),
    open_transaction(
        "cursor",
        "a cursor on jobs held open for 3 minutes, 8,000 jobs/s",
        Regime(rate=8000),
        hold_cursor,
        minutes=3,
    ),
]
