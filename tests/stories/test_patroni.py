"""A cluster with Patroni and etcd: a new leader loses no acknowledged job."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.stories.checker import check
from tests.stories.faults.patroni import (
    come_back,
    lose_primary,
    lose_primary_and_an_answered_enqueue,
    switch_over,
)
from tests.stories.ha.cluster import cluster
from tests.stories.story import story

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("stories"),
    pytest.mark.skipif(
        os.environ.get("HOWDAH_STORIES") != "all", reason="make test-ha has time for this"
    ),
]


def test_no_acknowledged_job_is_lost_when_the_leader_changes(tmp_path: Path) -> None:
    with cluster(tmp_path) as nodes, story(nodes, tmp_path / "story") as running:
        for inject in (switch_over, lose_primary, come_back, switch_over):
            outcome = running.inject(inject)
            print(outcome)
        result = running.finish()
    assert result.history.runs, "handlers ran"


def test_the_checker_reports_jobs_lost_by_an_asynchronous_standby(tmp_path: Path) -> None:
    """Without synchronous_mode jobs are lost: this shows that the test above can fail."""
    with (
        cluster(tmp_path, synchronous=False) as nodes,
        story(nodes, tmp_path / "story", workers=1) as running,
    ):
        running.inject(lose_primary_and_an_answered_enqueue)
        result = running.drain()
    lost = [
        finding for finding in check(result) if finding.startswith("acknowledged_enqueues_are_kept")
    ]
    assert lost, "a job that was acknowledged is lost"
