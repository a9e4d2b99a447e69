"""The primary is lost and its standby takes over: everything acknowledged is still there."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.stories.faults.failover import come_back, fail_over, keep_in_sync
from tests.stories.story import story
from tests.support.postgres_server import PgServer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("stories"),
    pytest.mark.skipif(
        os.environ.get("HOWDAH_STORIES") != "all", reason="make test-ha has time for this"
    ),
]


@pytest.fixture
def pair(tmp_path: Path) -> Generator[list[PgServer]]:
    """A primary and its synchronous standby."""
    primary = PgServer(tmp_path / "one").make().start()
    standby = PgServer(tmp_path / "two").follow(primary).start()
    keep_in_sync(primary)
    yield [primary, standby]
    for server in (primary, standby):
        server.crash()


def test_no_acknowledged_job_is_lost_with_the_primary(pair: list[PgServer], tmp_path: Path) -> None:
    with story(pair, tmp_path / "story") as running:
        for inject in (fail_over, come_back, fail_over):
            print(running.inject(inject))
        result = running.finish()
    assert result.history.runs, "handlers ran"
