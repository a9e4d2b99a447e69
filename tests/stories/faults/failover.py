"""Failover: the primary crashes, its synchronous standby takes over, the old primary comes back.

Clients name both servers and find the one that accepts writes. A commit is acknowledged only when
the standby has it, so nothing that was acknowledged is lost.
"""

from __future__ import annotations

import time

from tests.stories.history import Fault
from tests.stories.story import Story
from tests.support.postgres_server import STANDBY, PgServer
from tests.support.waiting import wait_until


def fail_over(story: Story) -> Fault:
    """Crash the primary and promote the standby."""
    old, new = story.server, other(story)
    until_in_sync(old)
    began = time.monotonic()
    old.crash()
    new.value("alter system reset synchronous_standby_names")  # it has no standby yet
    new.value("select pg_reload_conf()")
    new.promote()
    story.server = new
    return Fault("failover to the standby", began, time.monotonic(), crash=True)


def come_back(story: Story) -> Fault:
    """Start the old primary as the standby of the new one."""
    began = time.monotonic()
    returning = other(story)
    returning.follow(story.server).start()
    keep_in_sync(story.server)
    return Fault("the old primary coming back", began, time.monotonic())


def other(story: Story) -> PgServer:
    return next(server for server in story.servers if server is not story.server)


def keep_in_sync(primary: PgServer) -> None:
    """From now on, acknowledge a commit only when the standby has it."""
    primary.value(f"alter system set synchronous_standby_names = '{STANDBY}'")
    primary.value("select pg_reload_conf()")
    until_in_sync(primary)


def until_in_sync(primary: PgServer) -> None:
    sql = "select exists (select from pg_stat_replication where sync_state = 'sync')"
    wait_until(
        lambda: primary.value(sql),
        lambda: f"a standby is in sync:\n{primary.log_tail()}",
        deadline=60,
    )
