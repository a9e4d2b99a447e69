"""The quick set of faults: each is injected into a running fleet, and nothing is lost.

`HOWDAH_SEED=… pytest -k …` replays one with the same random choices. `make test-ha` injects all
faults, and `make soak` repeats them on one fleet.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.stories.faults import (
    clocks,
    deadlock,
    deploy,
    freeze,
    kill,
    limits,
    network,
    replies,
    restart,
    terminate,
)
from tests.stories.history import Fault
from tests.stories.story import Story, story
from tests.support.postgres_server import PgServer

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("stories")]

Inject = Callable[[Story], Fault]

# Each list is injected into one fleet. `make test` runs QUICK, `make test-ha` runs both.
QUICK: dict[str, list[Inject]] = {
    "processes": [
        kill.kill_worker,
        kill.kill_upkeep,
        freeze.freeze_worker,
        deploy.deploy_and_go_back,
    ],
    "server and network": [
        terminate.terminate_backends,
        restart.restart_server,
        replies.lose_enqueue_answers,
        replies.lose_commit_answers,
        replies.lose_claim_answers,
        replies.lose_complete_answers,
        network.cut_connections,
        network.half_open_connections,
    ],
}
MORE: dict[str, list[Inject]] = {
    "producers": [kill.kill_producer],
    "outages": [restart.restart_with_worker, restart.long_outage],
    "wrong clocks": [clocks.skew_clocks],
    "a slow network": [replies.lose_retry_answers, network.slow_network, network.black_hole],
    "limits": [
        limits.no_connection_left,
        limits.statement_timeout,
        limits.lock_timeout,
        limits.idle_in_transaction,
    ],
    "deadlocks": [deadlock.deadlocks],
}
STORIES = {**QUICK, **MORE} if os.environ.get("HOWDAH_STORIES") == "all" else QUICK


@pytest.mark.parametrize("name", STORIES)
def test_nothing_is_lost_and_work_continues_by_itself(
    name: str, own_server: PgServer, tmp_path: Path
) -> None:
    with story([own_server], tmp_path / "story") as running:
        for inject in STORIES[name]:
            print(running.inject(inject))
        result = running.finish()
    assert result.history.runs, "handlers ran"
