"""Never analysed: plans made on an empty table, no autovacuum, then a million jobs at once.

The worker has worked on the empty table before, so its sessions keep the plans of that time. All
jobs are enqueued in one transaction. The rate is measured, and the buffers that one claim reads in
a session which also made its plans on the empty table: a bad plan would read the whole backlog.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

import psycopg

from bench.adverse.pair import ADVERSE, BASELINE, Drains, curve, rate_left
from bench.case_record import CaseResult, Finding
from bench.cases import Case, CaseContext
from bench.testbed import Testbed

WARM_UP = 200  # jobs on the empty table
BUFFERS_AT_MOST = 1.5  # of the baseline's; a bad plan reads thousands of times as many
CLAIM = "select * from howdah.claim_job_batch('probe', array['noop'], 10)"
WITHOUT_AUTOVACUUM = """
    do $$
    declare v_table regclass;
    begin
        for v_table in select oid from pg_class
                       where relnamespace = 'howdah'::regnamespace and relkind = 'r' loop
            execute format('alter table %s set (autovacuum_enabled = off)', v_table);
        end loop;
    end $$
"""


def measure_never_analysed(context: CaseContext) -> CaseResult:
    drains: Drains = {BASELINE: [], ADVERSE: []}
    buffers: dict[str, list[int]] = {BASELINE: [], ADVERSE: []}
    jobs = context.jobs(1_000_000)
    for _, is_adverse in context.turns():
        side = ADVERSE if is_adverse else BASELINE
        with context.testbed() as testbed, ExitStack() as stack:
            if is_adverse:
                testbed.execute(WITHOUT_AUTOVACUUM)
            session = stack.enter_context(session_with_old_plans(testbed))
            worker = stack.enter_context(testbed.ready_worker(warm_up=WARM_UP))
            testbed.enqueue(jobs)
            if not is_adverse:
                testbed.vacuum_and_checkpoint()
            testbed.postgres.checkpoint()
            buffers[side].append(buffers_of_a_claim(session))
            worker.driver.send_start()
            drains[side].append(testbed.measure_drain(worker, jobs, 0))
    name, title = NEVER_ANALYSED.name, NEVER_ANALYSED.title
    return CaseResult(
        [rate_left(name, title, drains, 0.9), _buffers_ratio(buffers)], [curve(name, title, drains)]
    )


def _buffers_ratio(buffers: dict[str, list[int]]) -> Finding:
    baseline, adverse = (statistics.median(buffers[side]) for side in (BASELINE, ADVERSE))
    return Finding(
        case=NEVER_ANALYSED.name,
        title=f"the same, buffers of a claim (baseline {baseline:.0f})",
        measured=round(adverse / baseline, 3),
        sense="at most",
        bound=BUFFERS_AT_MOST,
    )


@contextmanager
def session_with_old_plans(testbed: Testbed) -> Generator[psycopg.Connection]:
    """Open a session that claims once while the table is empty."""
    with testbed.connect() as connection:
        connection.execute(CLAIM)
        yield connection


def buffers_of_a_claim(session: psycopg.Connection) -> int:
    """Count the buffers of a claim of ten jobs, and roll the claim back."""
    buffers = 0
    for _ in range(2):  # the first also reads changed catalogs
        with session.transaction(force_rollback=True):
            lines = session.execute(f"explain (analyze, buffers) {CLAIM}").fetchall()
        total = next(line for (line,) in lines if "Buffers:" in line)
        buffers = sum(map(int, re.findall(r"(?:hit|read)=(\d+)", total)))
    return buffers


NEVER_ANALYSED = Case(
    "never_analysed",
    "a never analysed table, 1,000,000 jobs, no autovacuum",
    measure_never_analysed,
)
