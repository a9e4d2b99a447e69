"""The buffer holds few jobs that are claimed and not started, in order, and never for long."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from howdah.claim.buffer import AHEAD, HOLD, LONGEST_HOLD, Buffer
from howdah.job import Claim

NOW = datetime(2030, 1, 1, tzinfo=UTC).timestamp()


def claims(*priorities: int) -> list[Claim]:
    return [
        Claim(UUID(int=n), "mail", priority, "{}", 1, 3, NOW, NOW, NOW)
        for n, priority in enumerate(priorities)
    ]


def fast_buffer(rate: float = 10_000, batch_size: int = 1000) -> Buffer:
    """A buffer that has seen jobs end at this rate for a while."""
    buffer = Buffer(batch_size)
    for n in range(int(rate)):
        buffer.set_ended(n, n / rate)
    return buffer


def test_at_first_nothing_is_claimed_beyond_the_free_slots() -> None:
    buffer = Buffer(1000)
    assert buffer.wanted(free=100) == 100
    assert buffer.wanted(free=0) == 0


def test_fast_jobs_are_claimed_in_advance_and_slow_ones_are_not() -> None:
    assert fast_buffer(10_000).ahead > 10_000 * AHEAD / 2
    assert fast_buffer(10).ahead == 0


def test_slow_claims_take_more_jobs_so_that_the_slots_stay_busy() -> None:
    quick, slow = fast_buffer(), Buffer(1000)
    for n in range(10_000):
        slow.claimed(took=0.02)
        slow.set_ended(n, n / 10_000)
    assert slow.ahead > 1.5 * quick.ahead
    assert slow.ahead < 10_000 * HOLD  # no job waits too long


def test_a_claim_takes_at_most_one_batch() -> None:
    assert fast_buffer(200_000, batch_size=500).wanted(free=5000) == 500


def test_a_few_free_slots_cause_no_claim_while_jobs_are_held() -> None:
    buffer = fast_buffer()
    buffer.put(claims(*[100] * buffer.ahead), now=0.0)
    assert buffer.wanted(free=3) == 0


def test_a_more_urgent_job_that_comes_later_starts_first() -> None:
    buffer = Buffer(1000)
    buffer.put(claims(100, 100, 30), now=0.0)
    buffer.put(claims(150), now=0.01)
    assert [claim.priority for claim in buffer.get(4)] == [150, 100, 100, 30]


def test_jobs_held_too_long_are_handed_back_and_fewer_are_claimed_in_advance() -> None:
    buffer = fast_buffer()
    before = buffer.ahead
    held = claims(100, 30)
    buffer.put(held, now=1.0)
    assert buffer.held_too_long(now=1.0 + HOLD / 2) == []
    assert buffer.held_too_long(now=1.0 + HOLD) == held
    assert len(buffer) == 0
    assert buffer.ahead <= before / 4 + 1


def test_a_job_is_held_for_less_than_a_tenth_of_a_second() -> None:
    assert HOLD < 0.1
    assert AHEAD < HOLD


def test_with_slow_claims_more_jobs_are_held_for_longer_up_to_a_limit() -> None:
    buffer = Buffer(1000)
    for n in range(10_000):
        buffer.claimed(took=0.1)
        buffer.set_ended(n, n / 10_000)
    assert buffer.ahead > 10_000 * HOLD  # enough for twice the time of a claim
    held = claims(100)
    buffer.put(held, now=1.0)
    assert buffer.held_too_long(now=1.0 + 3 * HOLD) == []
    assert buffer.held_too_long(now=1.0 + LONGEST_HOLD) == held
    for _ in range(100):
        buffer.claimed(took=60.0)
    buffer.put(held, now=2.0)
    assert buffer.held_too_long(now=2.0 + LONGEST_HOLD) == held


def test_the_age_of_a_held_job_counts_from_its_own_claim() -> None:
    """Otherwise a buffer that is never empty would release every job."""
    buffer = fast_buffer()
    buffer.put(claims(100, 100), now=1.0)
    buffer.put(claims(30, 30), now=1.0 + HOLD / 2)
    assert len(buffer.get(2)) == 2
    assert buffer.held_too_long(now=1.0 + HOLD) == []
    assert len(buffer.held_too_long(now=1.0 + 1.5 * HOLD)) == 2
