"""When a worker looks for jobs that are due, by what it was told."""

from __future__ import annotations

import pytest

from howdah.upkeep.next_due import A_DAY, LATER, SPREAD, SURE, NextDue

NOW = 1000.0


def test_nothing_is_looked_for_until_something_waits() -> None:
    due = NextDue("me")
    assert due.at is None
    due.found(None, NOW)
    assert due.at is None


def test_a_producer_that_says_so_makes_it_look_soon() -> None:
    due = NextDue("me")
    due.heard("", NOW)
    assert due.at is not None
    assert NOW <= due.at <= NOW + SPREAD
    before = due.at
    due.heard("", NOW + 0.001)
    assert due.at == before, "asked again, it looks once"


def test_an_own_answer_is_exact_and_another_workers_leaves_it_the_precedence() -> None:
    due = NextDue("me")
    due.found(2.0, NOW)
    assert due.at == NOW + 2
    due.heard('[500, "me"]', NOW)
    assert due.at == NOW + 2, "it knows that better"
    due.heard('[500, "other"]', NOW)
    assert due.at is not None
    assert NOW + 0.5 + LATER[0] <= due.at <= NOW + 0.5 + LATER[1]
    due.heard('[null, "other"]', NOW)
    assert due.at is None


def test_an_answer_that_may_be_older_than_the_question_does_not_answer_it() -> None:
    due = NextDue("me")
    due.heard("", NOW)
    due.heard('[60000, "other"]', NOW + SURE / 2)
    assert due.at is not None
    assert due.at <= NOW + SPREAD
    due.heard('[60000, "other"]', NOW + SURE)
    assert due.at > NOW + 60


def test_what_is_heard_during_a_look_is_not_forgotten() -> None:
    due = NextDue("me")
    due.heard("", NOW)
    due.looking()
    assert due.at is None
    due.heard("", NOW + 1)
    due.found(60.0, NOW + 1)
    assert due.at is not None
    assert due.at <= NOW + 1 + SPREAD


@pytest.mark.parametrize(
    "said", ["x", "{}", "[]", "[1]", '["1", "x"]', f"[{10**400}, null]", '[1e999, "x"]', "\0"]
)
def test_what_cannot_be_read_is_a_hint_to_look(said: str) -> None:
    due = NextDue("me")
    due.heard(said, NOW)
    assert due.at is not None
    assert due.at <= NOW + SPREAD


@pytest.mark.parametrize("said", [f'[{10**40}, "x"]', '[-1e300, "x"]', '[1e300, "x"]'])
def test_no_number_leads_beyond_a_day(said: str) -> None:
    due = NextDue("me")
    due.heard(said, NOW)
    assert due.at is not None
    assert NOW <= due.at <= NOW + A_DAY + 1


def test_who_met_another_at_it_looks_again_in_a_moment() -> None:
    due = NextDue("me")
    due.busy(NOW)
    assert due.at is not None
    assert NOW < due.at <= NOW + 0.1
