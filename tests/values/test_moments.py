"""An instant as seconds since 1970, as PostgreSQL counts them, and back."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from howdah.job import from_epoch
from tests.support import Database

pytestmark = pytest.mark.engine

instants = st.datetimes(datetime(1834, 1, 1), datetime(2105, 12, 31), timezones=st.just(UTC))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(instants, min_size=1, max_size=50))
def test_no_microsecond_is_lost(db: Database, given: list[datetime]) -> None:
    query = "select date_part('epoch', t) from unnest(%s::timestamptz[]) with ordinality as u(t, n)"
    assert [from_epoch(seconds) for seconds in db.column(f"{query} order by n", given)] == given


def test_an_instant_far_away_is_converted() -> None:
    """A plain INSERT may set created_at to the year 2 or the year 9998."""
    for far in (datetime(2, 1, 1, tzinfo=UTC), datetime(9998, 12, 31, tzinfo=UTC)):
        assert abs(from_epoch(far.timestamp()) - far).total_seconds() < 0.001
