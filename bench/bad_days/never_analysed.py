"""Never analysed: plans made on an empty table, no autovacuum, then a million jobs at once.

The worker has worked before, on the empty table, so its sessions hold the plans of that time. The
jobs come in one transaction. Besides the rate, the buffers of one claim are counted in a session
that also made its plans on the empty table: a plan that had flipped would read the whole backlog.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

import psycopg

from bench.bad_days.sides import BAD, GOOD, curve, rate_left
from bench.cases import Case, Stage
from bench.findings import Finding, Seen
from bench.yard import Drained, Yard

WARM_UP = 200  # jobs on the empty table
BUFFERS_AT_MOST = 1.5  # of the good day's; a flipped plan needs thousands of times as many
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


def of_never_analysed(stage: Stage) -> Seen:
    drained: dict[str, list[Drained]] = {GOOD: [], BAD: []}
    buffers: dict[str, list[int]] = {GOOD: [], BAD: []}
    jobs = stage.jobs(1_000_000)
    for _, is_bad in stage.turns():
        side = BAD if is_bad else GOOD
        with stage.yard() as yard, ExitStack() as stack:
            if is_bad:
                yard.execute(WITHOUT_AUTOVACUUM)
            session = stack.enter_context(probe(yard))
            worker = stack.enter_context(yard.ready_worker(warm_up=WARM_UP))
            yard.enqueue(jobs)
            if not is_bad:
                yard.settle_down()
            yard.postgres.checkpoint()
            buffers[side].append(buffers_of_a_claim(session))
            worker.driver.go()
            drained[side].append(yard.drained(worker, jobs, 0))
    name, title = NEVER_ANALYSED.name, NEVER_ANALYSED.title
    return Seen(
        [rate_left(name, title, drained, 0.9), _plan_kept(buffers)], [curve(name, title, drained)]
    )


def _plan_kept(buffers: dict[str, list[int]]) -> Finding:
    good, bad = (statistics.median(buffers[side]) for side in (GOOD, BAD))
    return Finding(
        case=NEVER_ANALYSED.name,
        title=f"the same, buffers of a claim ({good:.0f} on the good day)",
        measured=round(bad / good, 3),
        sense="at most",
        bound=BUFFERS_AT_MOST,
    )


@contextmanager
def probe(yard: Yard) -> Generator[psycopg.Connection]:
    """Open a session that claims once while the table is empty."""
    with yard.connect() as connection:
        connection.execute(CLAIM)
        yield connection


def buffers_of_a_claim(session: psycopg.Connection) -> int:
    """Claim ten jobs, count the buffers, and give the jobs back."""
    buffers = 0
    for _ in range(2):  # the first also looks up what changed in the catalogs
        with session.transaction(force_rollback=True):
            lines = session.execute(f"explain (analyze, buffers) {CLAIM}").fetchall()
        said = next(line for (line,) in lines if "Buffers:" in line)
        buffers = sum(map(int, re.findall(r"(?:hit|read)=(\d+)", said)))
    return buffers


NEVER_ANALYSED = Case(
    "never_analysed", "a never analysed table, 1,000,000 jobs, no autovacuum", of_never_analysed
)
