"""NextDue computes when to check for due jobs, from messages and own checks."""

from __future__ import annotations

import pytest

from howdah.upkeep.next_due import A_DAY, ANSWER_DELAY, HEAD_START, SPREAD, NextDue

NOW = 1000.0


def test_no_check_is_planned_while_no_job_waits() -> None:
    due = NextDue("me")
    assert due.at is None
    due.checked(None, NOW)
    assert due.at is None


def test_a_message_of_a_producer_causes_a_check_soon() -> None:
    due = NextDue("me")
    due.received("", NOW)
    assert due.at is not None
    assert NOW <= due.at <= NOW + SPREAD
    before = due.at
    due.received("", NOW + 0.001)
    assert due.at == before, "two messages cause one check"


def test_an_own_check_is_exact_and_another_workers_message_adds_a_head_start() -> None:
    due = NextDue("me")
    due.checked(2.0, NOW)
    assert due.at == NOW + 2
    due.received('[500, "me"]', NOW)
    assert due.at == NOW + 2, "its own message is ignored"
    due.received('[500, "other"]', NOW)
    assert due.at is not None
    assert NOW + 0.5 + HEAD_START[0] <= due.at <= NOW + 0.5 + HEAD_START[1]
    due.received('[null, "other"]', NOW)
    assert due.at is None


def test_a_message_that_may_be_older_than_the_hint_does_not_replace_it() -> None:
    due = NextDue("me")
    due.received("", NOW)
    due.received('[60000, "other"]', NOW + ANSWER_DELAY / 2)
    assert due.at is not None
    assert due.at <= NOW + SPREAD
    due.received('[60000, "other"]', NOW + ANSWER_DELAY)
    assert due.at > NOW + 60


def test_a_message_during_a_check_is_not_lost() -> None:
    due = NextDue("me")
    due.received("", NOW)
    due.begin_check()
    assert due.at is None
    due.received("", NOW + 1)
    due.checked(60.0, NOW + 1)
    assert due.at is not None
    assert due.at <= NOW + 1 + SPREAD


@pytest.mark.parametrize(
    "message", ["x", "{}", "[]", "[1]", '["1", "x"]', f"[{10**400}, null]", '[1e999, "x"]', "\0"]
)
def test_an_invalid_message_causes_a_check(message: str) -> None:
    due = NextDue("me")
    due.received(message, NOW)
    assert due.at is not None
    assert due.at <= NOW + SPREAD


@pytest.mark.parametrize("message", [f'[{10**40}, "x"]', '[-1e300, "x"]', '[1e300, "x"]'])
def test_a_check_is_planned_within_a_day(message: str) -> None:
    due = NextDue("me")
    due.received(message, NOW)
    assert due.at is not None
    assert NOW <= due.at <= NOW + A_DAY + 1


def test_a_check_is_repeated_soon_if_another_worker_is_checking() -> None:
    due = NextDue("me")
    due.other_is_checking(NOW)
    assert due.at is not None
    assert NOW < due.at <= NOW + 0.1
