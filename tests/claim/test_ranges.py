"""A claim over any lines, ranges and batch sizes takes what a simple sort would take.

`claim` reads ahead in parts, so that its cost depends on the jobs that it takes. Hypothesis
generates the lines. The expected answer is simple: sort everything that may be taken, take the
first n.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support import Database

pytestmark = pytest.mark.engine

INT_MIN, INT_MAX = -2147483648, 2147483647
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
FIRST, LAST = UUID(int=0), UUID(int=(1 << 128) - 1)
BEGINNING = datetime(2000, 1, 1, tzinfo=UTC)
END = datetime(2100, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class LineJob:
    """A job of a line: ready, waiting, held or not due."""

    job_type: str
    priority: int
    ready_at: datetime | None
    id: UUID
    held: bool = False
    due: bool = True

    @property
    def position(self) -> tuple[int, datetime, UUID]:
        return (~self.priority, self.ready_at or END, self.id)

    @property
    def free(self) -> bool:
        return self.ready_at is not None and not self.held and self.due


@dataclass(frozen=True)
class Range:
    """A part of the line of one type: after a position, up to a rank."""

    job_type: str
    after: tuple[int, datetime, UUID] = (INT_MIN, BEGINNING, FIRST)
    until: int = INT_MAX

    def contains(self, job: LineJob) -> bool:
        return (
            job.job_type == self.job_type
            and job.position > self.after
            and job.position[0] <= self.until
        )


priorities = st.sampled_from([INT_MAX, 150, 100, 100, 100, 30, 0, -7, INT_MIN])


@st.composite
def lines(draw: st.DrawFn) -> list[LineJob]:
    types = [f"type-{n}" for n in range(draw(st.integers(1, 5)))]
    jobs: list[LineJob] = []
    for number in range(draw(st.integers(0, 60))):
        ready_at = EPOCH + timedelta(seconds=draw(st.integers(0, 12)))
        waits = draw(st.integers(0, 9)) == 0
        jobs.append(
            LineJob(
                draw(st.sampled_from(types)),
                draw(priorities),
                None if waits else ready_at,
                UUID(int=number + 1),
                held=draw(st.integers(0, 9)) == 0,
                due=draw(st.integers(0, 9)) != 0,
            )
        )
    return jobs


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[LineJob], list[Range], int]:
    jobs = draw(lines())
    types = sorted({job.job_type for job in jobs} | {"unused"})
    ranges: list[Range] = []
    for job_type in types:
        own = [job for job in jobs if job.job_type == job_type]
        match draw(st.sampled_from(["none", "whole", "whole", "after", "lanes"])):
            case "whole":
                ranges.append(Range(job_type))
            case "after" if own:
                ranges.append(Range(job_type, draw(st.sampled_from(own)).position))
            case "lanes" if own:  # two parts of the line that do not overlap
                rank = draw(st.sampled_from(own)).position[0]
                ranges.append(Range(job_type, until=rank))
                ranges.append(Range(job_type, (rank, END, LAST)))
            case _:
                pass
    return jobs, ranges, draw(st.integers(1, 70))


def insert(db: Database, jobs: list[LineJob]) -> None:
    db.execute("truncate jobs_live")
    for job in jobs:
        db.execute(
            "insert into jobs_live (id, job_type, priority, ready_at, run_at, status, worker_id) "
            "values (%s, %s, %s, %s, case when %s then null else now() + '1 day' end, %s, %s)",
            job.id,
            job.job_type,
            job.priority,
            job.ready_at,
            job.due,
            "claimed" if job.held else "pending",
            "other" if job.held else None,
        )


def claim(db: Database, ranges: list[Range], batch: int) -> list[UUID]:
    return db.column(
        "select id from howdah.claim('first', %s::int, %s::text[], %s::int[], "
        "%s::timestamptz[], %s::uuid[], %s::int[])",
        batch,
        [range_.job_type for range_ in ranges],
        [range_.after[0] for range_ in ranges],
        [range_.after[1] for range_ in ranges],
        [range_.after[2] for range_ in ranges],
        [range_.until for range_ in ranges],
    )


def test_a_claim_takes_what_a_sort_would_take(db: Database) -> None:
    # without this trigger, jobs can be inserted as claimed
    db.execute("alter table jobs_live disable trigger guard_arriving")
    db.execute("set synchronous_commit = off")

    @settings(
        max_examples=120,
        derandomize=True,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(cases())
    def check(case: tuple[list[LineJob], list[Range], int]) -> None:
        jobs, ranges, batch = case
        with db.rolled_back():
            insert(db, jobs)
            claimable = [j for j in jobs if j.free and any(r.contains(j) for r in ranges)]
            expected = [j.id for j in sorted(claimable, key=lambda j: j.position)]
            assert claim(db, ranges, batch) == expected[:batch]
            # the next claim takes the rest, in the same order
            assert claim(db, ranges, 70) == expected[batch : batch + 70]

    check()


def test_the_lines_of_many_types_are_merged(db: Database) -> None:
    db.execute("set synchronous_commit = off")
    db.execute(
        "insert into jobs_live (job_type, priority, ready_at) "
        "select 'type-' || n % 40, n % 7, timestamptz '2026-01-01' + n * interval '1 second' "
        "from generate_series(1, 4000) as n"
    )
    expected = db.column("select id from jobs_live order by ~priority, ready_at, id")
    types = [f"type-{n}" for n in range(40)]
    claimed = [
        claim.id for batch in (1, 10, 100, 1000, 10_000) for claim in db.claim(*types, batch=batch)
    ]
    assert claimed == expected
