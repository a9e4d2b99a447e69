"""A cluster that Patroni and etcd keep: whoever leads, nothing that was acknowledged is lost."""

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


def test_no_acknowledged_job_is_lost_whoever_leads(tmp_path: Path) -> None:
    with cluster(tmp_path) as nodes, story(nodes, tmp_path / "story") as told:
        for inject in (switch_over, lose_primary, come_back, switch_over):
            one = told.suffer(inject)
            print(f"{one.name}: {one.seconds:.1f} s, then resumed after {one.resumed:.2f} s, "
                  f"caught up after {one.caught_up:.1f} s")  # fmt: skip
        facts = told.finish()
    assert facts.history.runs, "somebody worked"


def test_the_checker_sees_what_an_asynchronous_standby_loses(tmp_path: Path) -> None:
    """The same without synchronous_mode: the story above could fail."""
    with (
        cluster(tmp_path, synchronous=False) as nodes,
        story(nodes, tmp_path / "story", workers=1) as told,
    ):
        told.suffer(lose_primary_and_an_answered_enqueue)
        facts = told.come_to_rest()
    lost = [one for one in check(facts) if one.startswith("acknowledged_enqueues_are_kept")]
    assert lost, "a job that was acknowledged is gone"
