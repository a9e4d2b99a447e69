"""A fleet at work on an engine that admits wrongly: the checker reports it."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.admit.broken import broken_function
from tests.stories.checker import check
from tests.stories.story import story
from tests.support.postgres_server import PgServer

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("stories")]

BROKEN_PROMISE = {
    "a key ignores its number of slots": "no_key_has_more_at_work_than_allowed",
    "a limit ignores its number of slots": "no_limit_has_more_at_work_than_allowed",
    "a retry gives an ordered slot away": "jobs_of_an_ordered_key_run_in_the_order_of_enqueueing",
}
MANY = 12  # more than any rule of the story allows at once


def test_a_fleet_on_a_broken_engine_is_reported(own_server: PgServer, tmp_path: Path) -> None:
    with story([own_server], tmp_path / "story") as running:
        with psycopg.connect(running.dsn, autocommit=True) as connection:
            for what in BROKEN_PROMISE:
                connection.execute(broken_function(what).encode())
        for _ in range(MANY):
            key = {"key": "tenant-9", "tenant": "tenant-9"}
            running.enqueue("of_tenant", **key, seconds=2, until=1)
            running.enqueue("call", seconds=2)
        for _ in range(MANY):
            key = {"key": "account-9", "account": "account-9"}
            running.enqueue("book", **key, seconds=0.01, until=2)
        result = running.drain()
    broken = {finding.partition(":")[0] for finding in check(result)}
    assert set(BROKEN_PROMISE.values()) <= broken, broken
