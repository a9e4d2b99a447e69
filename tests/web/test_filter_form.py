"""A filter as a form, as a URL and in words; an invalid value is reported at its field."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from howdah.observe import Filter
from howdah.states import State
from howdah.waits_for import WaitsFor
from howdah.web.filter_form import FIELDS, Form, in_words, query_of, read

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ALL = Filter(
    status=(State.FAILED, State.CANCELLED),
    job_type=("a/b c", "<i>"),
    queue=("media", "a b"),
    priority=-7,
    worker_id="web-1 & more",
    key="<b>tenant</b> & 7",
    limited_by="api:tenant-7",
    waits_for=(WaitsFor.KEY, WaitsFor.LIMIT),
    attempts_from=0,
    attempts_to=3,
    created_from=datetime(2026, 1, 31, 14, 30, tzinfo=UTC),
    created_to=datetime(2026, 2, 1, tzinfo=UTC),
    error="100% = bad",
    fingerprint="x <n>",
    payload=(("to", "a=b"), ("n", "1.10")),
)


def form_of(**fields: str | list[str]) -> Form:
    pairs = [
        (name, value)
        for name, given in fields.items()
        for value in (given if isinstance(given, list) else [given])
    ]
    return read(pairs, NOW, frozenset({"password"}))


def test_every_filter_survives_its_url() -> None:
    query = query_of(ALL)
    assert tuple(query) == FIELDS
    form = read([(name, value) for name in query for value in query[name]], NOW)
    assert form.invalid == {}
    assert form.filter == ALL
    assert query_of(Filter()) == {}
    assert form_of().filter == Filter()


def test_times_are_relative_or_exact_and_in_utc_unless_they_have_a_zone() -> None:
    for text, expected in {
        "2h": NOW - timedelta(hours=2),
        "3 d": NOW - timedelta(days=3),
        "90m ago": NOW - timedelta(minutes=90),
        "2026-01-31": datetime(2026, 1, 31, tzinfo=UTC),
        "2026-01-31 14:30": datetime(2026, 1, 31, 14, 30, tzinfo=UTC),
        "2026-01-31 14:30:05 UTC": datetime(2026, 1, 31, 14, 30, 5, tzinfo=UTC),
        "2026-01-31T14:30+02:00": datetime(2026, 1, 31, 12, 30, tzinfo=UTC),
    }.items():
        assert form_of(created_from=text).filter.created_from == expected, text


def test_priorities_have_names_and_numbers() -> None:
    assert form_of(priority="explicit").filter.priority == 150
    assert form_of(priority=" -2147483648 ").filter.priority == -(2**31)


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
        ("waits_for", "godot", "They wait for: time, retry, key, limit, worker."),
        ("key", "a\0b", "NUL"),
        ("payload", "abc", "has no ="),
        ("payload", "=abc", "has no key"),
        ("payload", 'a={"b": "\\u0000"}', "NUL"),
        ("job_type", "a\0b", "NUL"),
        ("error", "\0", "NUL"),
    ],
)
def test_an_invalid_value_is_reported_at_its_field_and_kept_as_typed(
    field: str, value: str, part: str
) -> None:
    form = form_of(**{field: value, "worker_id": "w"})
    assert part in form.invalid[field]
    assert list(form.invalid) == [field]
    assert form.first(field) == value
    assert form.filter == Filter(worker_id="w")


def test_a_range_that_ends_before_its_start_is_reported() -> None:
    assert "swap" in form_of(attempts_from="3", attempts_to="2").invalid["attempts_to"]
    assert "swap" in form_of(created_from="1h", created_to="2h").invalid["created_to"]
    assert form_of(attempts_from="2", attempts_to="2").invalid == {}


def test_a_filter_on_a_redacted_key_is_refused() -> None:
    for text in ("Password=x", 'user={"a": [{"PASSWORD": "x"}]}'):
        assert "redacted" in form_of(payload=text).invalid["payload"]
    assert form_of(payload="user=password").invalid == {}


def test_a_filter_on_a_key_of_jobs_is_refused_where_keys_are_redacted() -> None:
    for field, value in {"key": "tenant-7", "limited_by": "api:tenant-7"}.items():
        assert "The keys of jobs are redacted here" in form_of(**{field: value}).invalid[field]
    assert form_of(limited_by="api", waits_for="key").invalid == {}


def test_a_filter_is_described_in_words() -> None:
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
        "with the key <b>tenant</b> & 7, under the limit api:tenant-7",
        "that wait for a slot of their key or their limit",
        "3 attempts at most",
        "created since 2026-01-31 14:30:00 UTC",
        "created before 2026-02-01 00:00:00 UTC",
        "“100% = bad” in the error",
        "with an error like “x <n>”",
        "to = a=b in the payload",
        "n = 1.10 in the payload",
    ):
        assert part in words
    assert in_words(Filter(attempts_from=2)) == "jobs with 2 attempts or more"
    assert "2 to 4 attempts" in in_words(Filter(attempts_from=2, attempts_to=4))
