"""Fault registry: every fault, by the name that `make soak FAULT=…` takes."""

from __future__ import annotations

from collections.abc import Callable

from tests.stories.faults import (
    clocks,
    deadlock,
    deploy,
    failover,
    freeze,
    full_disk,
    kill,
    limits,
    network,
    replies,
    restart,
    terminate,
)
from tests.stories.history import Fault
from tests.stories.soak.servers import SoakServers
from tests.stories.story import Story

Inject = Callable[[Story], Fault]


def available_faults(servers: SoakServers) -> dict[str, list[Inject]]:
    """Return the faults that are possible here; those of one list are done one after another."""
    faults: dict[str, list[Inject]] = {
        "kill_worker": [kill.kill_worker],
        "kill_producer": [kill.kill_producer],
        "kill_upkeep": [kill.kill_upkeep],
        "freeze_worker": [freeze.freeze_worker],
        "terminate_backends": [terminate.terminate_backends],
        "restart_server": [restart.restart_server],
        "restart_with_worker": [restart.restart_with_worker],
        "long_outage": [restart.long_outage],
        "skew_clocks": [clocks.skew_clocks],
        "lose_enqueue_answers": [replies.lose_enqueue_answers],
        "lose_commit_answers": [replies.lose_commit_answers],
        "lose_claim_answers": [replies.lose_claim_answers],
        "lose_complete_answers": [replies.lose_complete_answers],
        "lose_retry_answers": [replies.lose_retry_answers],
        "cut_connections": [network.cut_connections],
        "half_open_connections": [network.half_open_connections],
        "black_hole": [network.black_hole],
        "slow_network": [network.slow_network],
        "no_connection_left": [limits.no_connection_left],
        "statement_timeout": [limits.statement_timeout],
        "lock_timeout": [limits.lock_timeout],
        "idle_in_transaction": [limits.idle_in_transaction],
        "deadlocks": [deadlock.deadlocks],
        "deploy_and_go_back": [deploy.deploy_and_go_back],
        "fail_over": [failover.fail_over, failover.come_back],
    }
    if servers.refusal is None:
        faults["full_data_disk"] = [_full_disk_of_the_primary(servers, "data")]
        faults["full_wal_disk"] = [_full_disk_of_the_primary(servers, "WAL")]
    return faults


def _full_disk_of_the_primary(servers: SoakServers, part: str) -> Inject:
    def fill(story: Story) -> Fault:
        data, wal = servers.disks[story.server.port]
        return full_disk.full_disk(data if part == "data" else wal, part)(story)

    return fill
