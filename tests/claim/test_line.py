"""The line remembers where a worker left off: its marks skip what was read, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from howdah.claim.line import FIRST_RANK, FRESH, IDLE_SHARE, LAST_RANK, SHARE, SLOW, Line
from howdah.job import Claim

NOW = datetime(2030, 1, 1, tzinfo=UTC)

ranks = st.sampled_from([FIRST_RANK, -151, -101, -31, 0, LAST_RANK])
places = st.integers(0, 3).map(lambda n: NOW - timedelta(hours=4 - n))
ids = st.integers(1, 4).map(lambda n: UUID(int=n))
keys = st.tuples(ranks, places, ids)


def claimed(
    key: tuple[int, datetime, UUID], job_type: str = "mail", age: float = FRESH * 2
) -> Claim:
    rank, ready_at, id = key
    since = ready_at.timestamp()
    return Claim(id, job_type, ~rank, "{}", 1, 3, since, since, since + age)


def slow_line(*claims: Claim) -> Line:
    line = Line(["mail", "fax"])
    line.scanned(list(claims), took=SLOW * 100, whole=True, now=0.0)
    return line


def covering(line: Line, job_type: str, key: tuple[int, datetime, UUID]) -> int:
    """Count the ranges that contain this job."""
    return sum(
        t == job_type and (rank, ready_at, id) < key and key[0] <= until
        for t, rank, ready_at, id, until in zip(*line.after_marks(), strict=True)
    )


@given(marks=st.lists(keys, max_size=6), key=keys)
def test_a_job_is_in_exactly_one_range_unless_a_mark_of_its_lane_is_past_it(
    marks: list[tuple[int, datetime, UUID]], key: tuple[int, datetime, UUID]
) -> None:
    line = slow_line(*(claimed(mark) for mark in marks))
    is_past = any(mark[0] == key[0] and key <= mark for mark in marks)
    assert covering(line, "mail", key) == (0 if is_past else 1)
    assert covering(line, "fax", key) == 1, "marks of one type do not affect another"


@given(key=keys)
def test_the_whole_line_contains_every_job(key: tuple[int, datetime, UUID]) -> None:
    line = Line(["mail", "fax", "mail"])
    assert line.job_types == ["fax", "mail"]
    assert covering(line, "mail", key) == 1


def test_every_scan_reads_the_whole_line_while_scans_are_quick() -> None:
    line = Line(["mail"])
    line.scanned([claimed((0, NOW, UUID(int=1)))], took=SLOW / 2, whole=True, now=0.0)
    assert line.next_scan() == (line.whole(), True)
    assert not line.rescan_due(1000.0), "no mark skips a job"


def test_a_slow_line_is_scanned_after_its_marks_and_rescanned_in_time() -> None:
    line = slow_line(claimed((0, NOW, UUID(int=1))))
    ranges, whole = line.next_scan()
    assert not whole
    assert ranges == line.after_marks() != line.whole()
    for idle, share in ((False, SHARE), (True, IDLE_SHARE)):
        due = SLOW * 100 / share
        assert not line.rescan_due(due - 0.1, idle)
        assert line.rescan_due(due + 0.1, idle)


def test_a_job_that_was_handed_back_causes_a_rescan_soon() -> None:
    line = slow_line(claimed((0, NOW, UUID(int=1))))
    line.scanned([], took=SLOW * 2, whole=True, now=50.0)
    assert not line.rescan_due(50.5)
    line.rescan_soon()
    assert line.rescan_due(50.5)
    assert not line.rescan_due(50.1), "scans never take more than their share of the time"
    line.scanned([], took=SLOW * 2, whole=True, now=60.0)
    assert not line.rescan_due(60.5), "one rescan is enough"


def test_a_line_that_is_quick_again_drops_its_marks() -> None:
    line = slow_line(claimed((0, NOW, UUID(int=1))))
    line.scanned([], took=SLOW / 2, whole=True, now=500.0)
    assert line.next_scan() == (line.whole(), True)


def test_no_mark_skips_jobs_that_just_became_ready() -> None:
    """A transaction that began a moment ago may still commit a job with an earlier ready_at."""
    line = slow_line(claimed((0, NOW, UUID(int=1)), age=FRESH / 2))
    assert line.after_marks() == line.whole()


def test_a_scan_of_some_types_is_not_a_whole_scan() -> None:
    line = Line(["index", "mail", "resize"])
    ranges, whole = line.next_scan(["mail"])
    assert not whole
    assert ranges.job_types == ["mail"]
    assert line.next_scan() == (line.whole(), True)


def test_a_slow_line_is_scanned_after_its_marks_for_every_wakeup() -> None:
    line = slow_line(claimed((0, NOW, UUID(int=1))))
    assert line.next_scan(line.job_types) == (line.after_marks(), False)
