"""A filter is the same as a form, as a URL and in words; what does not fit is told at its field."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from howdah.observe import Filter
from howdah.states import State
from howdah.web.filter_form import FIELDS, Form, in_words, query_of, read

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ALL = Filter(
    status=(State.FAILED, State.CANCELLED),
    job_type=("a/b c", "<i>"),
    priority=-7,
    worker_id="web-1 & more",
    attempts_from=0,
    attempts_to=3,
    created_from=datetime(2026, 1, 31, 14, 30, tzinfo=UTC),
    created_to=datetime(2026, 2, 1, tzinfo=UTC),
    error="100% = bad",
    fingerprint="x <n>",
    payload=(("to", "a=b"), ("n", "1.10")),
)


def typed(**fields: str | list[str]) -> Form:
    pairs = [
        (name, one)
        for name, said in fields.items()
        for one in (said if isinstance(said, list) else [said])
    ]
    return read(pairs, NOW, frozenset({"password"}))


def test_every_filter_survives_its_url() -> None:
    query = query_of(ALL)
    assert tuple(query) == FIELDS
    form = typed(**query)
    assert form.wrong == {}
    assert form.filter == ALL
    assert query_of(Filter()) == {}
    assert typed().filter == Filter()


def test_times_are_said_from_now_or_exactly_and_mean_utc_unless_they_say_a_zone() -> None:
    for said, meant in {
        "2h": NOW - timedelta(hours=2),
        "3 d": NOW - timedelta(days=3),
        "90m ago": NOW - timedelta(minutes=90),
        "2026-01-31": datetime(2026, 1, 31, tzinfo=UTC),
        "2026-01-31 14:30": datetime(2026, 1, 31, 14, 30, tzinfo=UTC),
        "2026-01-31 14:30:05 UTC": datetime(2026, 1, 31, 14, 30, 5, tzinfo=UTC),
        "2026-01-31T14:30+02:00": datetime(2026, 1, 31, 12, 30, tzinfo=UTC),
    }.items():
        assert typed(created_from=said).filter.created_from == meant, said


def test_priorities_have_names_and_numbers() -> None:
    assert typed(priority="explicit").filter.priority == 150
    assert typed(priority=" -2147483648 ").filter.priority == -(2**31)


@pytest.mark.parametrize(
    ("field", "value", "part"),
    [
        ("status", "asleep", "no state"),
        ("priority", "high", "whole number"),
        ("priority", "2147483648", "between"),
        ("priority", "9" * 5000, "between"),
        ("attempts_from", "-1", "between 0"),
        ("attempts_to", "1.5", "whole number"),
        ("created_from", "yesterday", "no time"),
        ("created_to", "9999-12-31", "between the years"),
        ("created_from", "0001-01-01T00:00+14:00", "between the years"),
        ("payload", "abc", "has no ="),
        ("payload", "=abc", "has no key"),
        ("payload", 'a={"b": "\\u0000"}', "NUL"),
        ("job_type", "a\0b", "NUL"),
        ("error", "\0", "NUL"),
    ],
)
def test_what_does_not_fit_is_told_at_its_field_and_kept_as_typed(
    field: str, value: str, part: str
) -> None:
    form = typed(**{field: value, "worker_id": "w"})
    assert part in form.wrong[field]
    assert list(form.wrong) == [field]
    assert form.one(field) == value
    assert form.filter == Filter(worker_id="w")


def test_a_range_that_ends_before_it_begins_is_told() -> None:
    assert "swap" in typed(attempts_from="3", attempts_to="2").wrong["attempts_to"]
    assert "swap" in typed(created_from="1h", created_to="2h").wrong["created_to"]
    assert typed(attempts_from="2", attempts_to="2").wrong == {}


def test_nobody_can_guess_what_stands_under_a_hidden_key() -> None:
    for said in ("Password=x", 'user={"a": [{"PASSWORD": "x"}]}'):
        assert "hidden" in typed(payload=said).wrong["payload"]
    assert typed(payload="user=password").wrong == {}


def test_a_filter_is_said_in_words() -> None:
    assert in_words(Filter()) == "all jobs"
    assert in_words(Filter(status=(State.FAILED,))) == "failed jobs"
    assert in_words(Filter(status=(State.FAILED,), job_type=("mail",))) == (
        "failed jobs of the type mail"
    )
    words = in_words(ALL)
    for part in (
        "failed or cancelled jobs of the types a/b c or <i>",
        "priority -7",
        "last held by web-1 & more",
        "3 attempts at most",
        "created since 2026-01-31 14:30:00 UTC",
        "created before 2026-02-01 00:00:00 UTC",
        "“100% = bad” in the error",
        "failed like “x <n>”",
        "to = a=b in the payload",
        "n = 1.10 in the payload",
    ):
        assert part in words
    assert in_words(Filter(attempts_from=2)) == "jobs with 2 attempts or more"
    assert "2 to 4 attempts" in in_words(Filter(attempts_from=2, attempts_to=4))
