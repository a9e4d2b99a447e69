"""The line remembers where a worker left off: its marks skip what was read, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from howdah.claim.line import (
    FEW_LANES,
    FIRST_RANK,
    IDLE_SHARE,
    LAST_RANK,
    MAX_LANES,
    OVERLAPS,
    RESCAN_EVERY,
    SHARE,
    SLOW,
    WHOLE_EVERY,
    Line,
    Scan,
)
from howdah.job import Claim

NOW = datetime(2030, 1, 1, tzinfo=UTC)
QUICK = SLOW / 10

ranks = st.sampled_from([FIRST_RANK, -151, -101, -31, 0, LAST_RANK])
places = st.integers(0, 3).map(lambda n: NOW - timedelta(hours=4 - n))
ids = st.integers(1, 4).map(lambda n: UUID(int=n))
keys = st.tuples(ranks, places, ids)

Key = tuple[int, datetime, UUID]


def key(n: int, rank: int = -101) -> Key:
    """Return the place of the n-th job of a lane."""
    return (rank, NOW + timedelta(milliseconds=n), UUID(int=n + 1))


def claimed(key: Key, clock: datetime = NOW + timedelta(days=1)) -> Claim:
    rank, ready_at, id = key
    since = ready_at.timestamp()
    return Claim(id, "mail", ~rank, "{}", 1, 3, since, since, clock.timestamp())


def scan(line: Line, now: float, *keys: Key, wanted: int = 1, took: float = QUICK) -> Scan:
    """Do the scan that is next; it finds these jobs."""
    next_scan = line.next_scan(now)
    line.scanned(next_scan, [claimed(key) for key in keys], wanted, took, now)
    return next_scan


def covering(scan: Scan, key: Key, job_type: str = "mail") -> int:
    """Count the ranges that contain this job."""
    return sum(
        t == job_type and (rank, ready_at, id) < key and key[0] <= until
        for t, rank, ready_at, id, until in zip(*scan.ranges, strict=True)
    )


def slow_line(*keys: Key) -> Line:
    line = Line(["mail", "fax"])
    scan(line, 0.0, *keys, wanted=len(keys), took=SLOW * 100)
    return line


@given(marks=st.lists(keys, min_size=1, max_size=6), key=keys)
def test_a_job_is_in_exactly_one_range_unless_a_mark_of_its_lane_is_past_it(
    marks: list[Key], key: Key
) -> None:
    line = slow_line(*sorted(marks))
    for n in range(len(OVERLAPS)):  # these scans repeat all
        scan(line, n / 1000, *sorted(marks), wanted=len(marks))
    after_marks = line.next_scan(0.003)
    is_past = any(mark[0] == key[0] and key <= mark for mark in marks)
    assert covering(after_marks, key) == (0 if is_past else 1)
    assert covering(after_marks, key, "fax") == 1, "marks of one type do not affect another"


@given(key=keys)
def test_the_whole_line_contains_every_job(key: Key) -> None:
    line = Line(["mail", "fax", "mail"])
    assert line.job_types == ["fax", "mail"]
    assert covering(line.next_scan(0.0), key) == 1


def test_the_whole_line_is_scanned_again_and_again_within_its_share() -> None:
    line = Line(["mail"])
    assert scan(line, 0.0, key(0)).whole
    assert not scan(line, WHOLE_EVERY * 0.9, key(1)).whole
    assert scan(line, WHOLE_EVERY, key(2), took=SLOW * 0.9).whole
    share = SLOW * 0.9 / SHARE
    assert not scan(line, WHOLE_EVERY + share * 0.9, key(3)).whole
    assert scan(line, WHOLE_EVERY + share * 1.1, key(4)).whole


def test_a_busy_worker_scans_after_its_marks_and_looks_back_in_time() -> None:
    line = slow_line(key(0))
    for n in range(len(OVERLAPS)):
        scan(line, n / 1000, key(n + 1))
    assert covering(line.next_scan(0.003), key(3)) == 0
    assert covering(line.next_scan(0.003), key(4)) == 1
    assert covering(line.next_scan(0.02), key(3)) == 1


def test_a_late_commit_is_found_by_the_first_scan_that_looks_back_far_enough() -> None:
    """Its place was passed at 100.0; it is committed some time later."""
    for seconds in OVERLAPS:
        line = slow_line(key(0))
        step = seconds / 5
        now = 100.0 - 10 * seconds
        while now < 100.0:
            scan(line, now, key(1))
            now += step
        scan(line, 100.0, key(50))
        committed = 100.0 + seconds * 0.9
        n, now = 51, 100.0
        while True:
            now += step
            ranges = covering(line.next_scan(now), key(49))
            scan(line, now, key(n))
            n += 1
            if now >= committed and ranges:
                break
            assert now < committed + 2 * seconds, "an overlap of this length finds it"


def test_a_worker_that_found_less_than_it_wanted_repeats_the_last_moment() -> None:
    """Another transaction may commit a job that is a few milliseconds older."""
    line = slow_line(key(0))
    for n in range(len(OVERLAPS)):
        scan(line, n / 1000, key(0))
    scan(line, 0.003, key(5), wanted=2)
    assert covering(line.next_scan(0.004), key(4)) == 1
    assert covering(line.next_scan(0.004, only=["mail"]), key(4)) == 1, "also when it is woken"


def test_a_slow_line_is_rescanned_within_its_share_of_the_time() -> None:
    line = slow_line(key(0))
    for idle, share in ((False, SHARE), (True, IDLE_SHARE)):
        due = SLOW * 100 / share
        assert not line.rescan_due(due - 0.1, idle)
        assert line.rescan_due(due + 0.1, idle)
    line.rescanned([], 10, took=SLOW * 1.1, now=50.0)
    assert not line.rescan_due(50.0 + RESCAN_EVERY * 0.9)
    assert line.rescan_due(50.0 + RESCAN_EVERY * 1.1)


def test_a_job_that_was_handed_back_causes_a_whole_scan_soon() -> None:
    line = Line(["mail"])
    scan(line, 0.0, key(0))
    assert not scan(line, 0.001, key(1)).whole
    line.rescan_soon()
    assert scan(line, 0.002, key(2)).whole
    assert not scan(line, 0.003, key(3)).whole, "one is enough"

    line = slow_line(key(0))
    line.rescanned([], 10, took=SLOW * 2, now=50.0)
    line.rescan_soon()
    assert line.rescan_due(50.0 + SLOW * 2 / IDLE_SHARE * 1.1)
    assert not line.rescan_due(50.0 + SLOW * 2 / IDLE_SHARE * 0.9), "within its share of the time"


def test_a_line_that_is_quick_again_is_scanned_as_a_whole_again() -> None:
    line = slow_line(key(0))
    assert not line.next_scan(400.0).whole
    line.rescanned([], 10, took=QUICK, now=500.0)
    assert line.next_scan(501.0).whole


def test_a_quick_line_of_many_lanes_uses_no_marks() -> None:
    """Each mark costs a probe of the index."""
    line = Line(["mail"])
    lanes = [key(0, rank) for rank in range(FEW_LANES + 1)]
    scan(line, 0.0, *lanes, wanted=100)
    assert scan(line, 0.001, key(1)).whole
    assert len(line.next_scan(0.002, only=["mail"]).ranges.job_types) == 1


def test_the_marks_of_too_many_lanes_are_forgotten() -> None:
    line = slow_line(key(0))
    for rank in range(0, MAX_LANES + 1, 50):
        scan(line, 1.0 + rank, *[key(0, rank + n) for n in range(50)], wanted=50)
    assert len(line.next_scan(5000.0).ranges.job_types) < 100


def test_a_job_of_the_future_moves_no_mark() -> None:
    """Else every job until then would be before the mark."""
    line = slow_line(key(0))
    future = (-101, NOW + timedelta(days=365), UUID(int=9))
    for n in range(len(OVERLAPS) + 1):
        line.scanned(line.next_scan(n / 1000), [claimed(future, clock=NOW)], 1, QUICK, n / 1000)
    assert covering(line.next_scan(0.004), key(1)) == 1


def test_the_marks_are_forgotten_when_the_clock_was_set_back() -> None:
    line = slow_line(key(0))
    for n in range(len(OVERLAPS)):
        scan(line, n / 1000, key(0))
    earlier = (-101, NOW - timedelta(hours=1), UUID(int=9))
    assert covering(line.next_scan(0.003), earlier) == 0
    line.rescanned([claimed(earlier, clock=earlier[1])], 10, QUICK, 0.003)
    line.slow = True
    assert covering(line.next_scan(0.004), earlier) == 1


def test_a_scan_of_some_types_is_not_a_whole_scan() -> None:
    line = Line(["index", "mail", "resize"])
    only = line.next_scan(0.0, ["mail"])
    assert not only.whole
    assert only.ranges.job_types == ["mail"]
    assert line.next_scan(0.0).whole
