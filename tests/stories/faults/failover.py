"""Failover: the primary is gone, its synchronous standby takes over, the old one comes back.

Clients name both servers and find out by themselves which of them takes writes. Acknowledged is
only what the standby has too, so nothing that was acknowledged is lost.
"""

from __future__ import annotations

import time

from tests.stories.history import Fault
from tests.stories.server import STANDBY, PgServer
from tests.stories.story import Story


def fail_over(story: Story) -> Fault:
    """Crash the primary and promote the standby."""
    old, new = story.server, other(story)
    until_in_sync(old)
    began = time.monotonic()
    old.crash()
    new.value("alter system reset synchronous_standby_names")  # it has no standby of its own yet
    new.value("select pg_reload_conf()")
    new.promote()
    story.server = new
    return Fault("failover to the standby", began, time.monotonic(), crash=True)


def come_back(story: Story) -> Fault:
    """Let the old primary come back as the standby of the new one."""
    began = time.monotonic()
    returning = other(story)
    returning.follow(story.server).start()
    keep_in_sync(story.server)
    return Fault("the old primary coming back", began, time.monotonic())


def other(story: Story) -> PgServer:
    return next(server for server in story.servers if server is not story.server)


def keep_in_sync(primary: PgServer) -> None:
    """Acknowledge from now on only what the standby has too."""
    primary.value(f"alter system set synchronous_standby_names = '{STANDBY}'")
    primary.value("select pg_reload_conf()")
    until_in_sync(primary)


def until_in_sync(primary: PgServer) -> None:
    until = time.monotonic() + 60
    sql = "select exists (select from pg_stat_replication where sync_state = 'sync')"
    while not primary.value(sql):
        assert time.monotonic() < until, f"no standby keeps up:\n{primary.said()}"
        time.sleep(0.02)
