"""Where a worker left off: marks leave out what is behind them, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from howdah.claim.claim import FIRST_RANK, FRESH, IDLE_SHARE, LAST_RANK, SHARE, SLOW, Line
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
    line.looked(list(claims), took=SLOW * 100, whole=True, now=0.0)
    return line


def covering(line: Line, job_type: str, key: tuple[int, datetime, UUID]) -> int:
    """Count the stretches a job would be found in."""
    return sum(
        t == job_type and (rank, ready_at, id) < key and key[0] <= until
        for t, rank, ready_at, id, until in zip(*line.after_marks(), strict=True)
    )


@given(marks=st.lists(keys, max_size=6), key=keys)
def test_every_job_is_in_exactly_one_stretch_unless_its_lane_is_claimed_up_to_it(
    marks: list[tuple[int, datetime, UUID]], key: tuple[int, datetime, UUID]
) -> None:
    line = slow_line(*(claimed(mark) for mark in marks))
    behind = any(mark[0] == key[0] and key <= mark for mark in marks)
    assert covering(line, "mail", key) == (0 if behind else 1)
    assert covering(line, "fax", key) == 1, "another type's marks are not its own"


@given(key=keys)
def test_the_whole_line_leaves_nothing_out(key: tuple[int, datetime, UUID]) -> None:
    line = Line(["mail", "fax", "mail"])
    assert line.job_types == ["fax", "mail"]
    assert covering(line, "mail", key) == 1


def test_while_looks_are_quick_every_look_is_a_whole_one() -> None:
    line = Line(["mail"])
    line.looked([claimed((0, NOW, UUID(int=1)))], took=SLOW / 2, whole=True, now=0.0)
    assert line.next_look() == (line.whole(), True)
    assert not line.look_back_due(1000.0), "there is nothing behind"


def test_a_slow_line_is_looked_at_behind_its_marks_and_looked_back_at_in_time() -> None:
    line = slow_line(claimed((0, NOW, UUID(int=1))))
    stretches, whole = line.next_look()
    assert not whole
    assert stretches == line.after_marks() != line.whole()
    for idle, share in ((False, SHARE), (True, IDLE_SHARE)):
        due = SLOW * 100 / share
        assert not line.look_back_due(due - 0.1, idle)
        assert line.look_back_due(due + 0.1, idle)


def test_what_was_handed_back_is_looked_for_soon() -> None:
    line = slow_line(claimed((0, NOW, UUID(int=1))))
    line.looked([], took=SLOW * 2, whole=True, now=50.0)
    assert not line.look_back_due(50.5)
    line.look_back_soon()
    assert line.look_back_due(50.5)
    assert not line.look_back_due(50.1), "however often, looks take no more than their share"
    line.looked([], took=SLOW * 2, whole=True, now=60.0)
    assert not line.look_back_due(60.5), "once is enough"


def test_a_line_that_became_quick_again_forgets_its_marks() -> None:
    line = slow_line(claimed((0, NOW, UUID(int=1))))
    line.looked([], took=SLOW / 2, whole=True, now=500.0)
    assert line.next_look() == (line.whole(), True)


def test_no_mark_covers_the_last_moments_of_the_line() -> None:
    """A transaction that began a moment ago may still commit a job with an earlier ready_at."""
    line = slow_line(claimed((0, NOW, UUID(int=1)), age=FRESH / 2))
    assert line.after_marks() == line.whole()


def test_a_look_at_some_types_is_no_whole_one() -> None:
    line = Line(["index", "mail", "resize"])
    stretches, whole = line.next_look(["mail"])
    assert not whole
    assert stretches.job_types == ["mail"]
    assert line.next_look() == (line.whole(), True)


def test_a_slow_line_is_looked_at_behind_its_marks_whoever_rang() -> None:
    line = slow_line(claimed((0, NOW, UUID(int=1))))
    assert line.next_look(line.job_types) == (line.after_marks(), False)
