"""Patroni: a switchover, a kill of the primary and its Patroni, and its return.

Patroni decides which server takes over. Before the primary is killed, its standby stops receiving
for a moment. What is acknowledged then would be lost if a commit did not wait for the standby.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from tests.stories.ha.node import Node
from tests.stories.history import Fault
from tests.stories.story import Story
from tests.support.waiting import wait_until

DEADLINE = 60.0


def switch_over(story: Story) -> Fault:
    """Ask Patroni to switch to the standby."""
    old, new = _nodes(story)
    new.until("it is in sync", "sync_standby")
    began = time.monotonic()
    status, answer = old.ask("/switchover", {"leader": old.name, "candidate": new.name})
    assert status == 200, answer
    new.until("it leads", "leads")
    story.server = new
    return Fault("Patroni: switchover", began, time.monotonic())


def lose_primary(story: Story) -> Fault:
    """Kill the primary and its Patroni while commits wait for a standby that lags."""
    old, new = _nodes(story)
    new.until("it is in sync", "sync_standby")
    return _lose(story, old, new, lambda: _until_commits_wait(old))


def lose_primary_and_an_answered_enqueue(story: Story) -> Fault:
    """Do the same to a cluster that does not wait for its standby: an answered job is lost."""
    old, new = _nodes(story)
    return _lose(story, old, new, lambda: story.enqueue("slow", seconds=0))


def come_back(story: Story) -> Fault:
    """Start the old primary; Patroni makes it a standby of the new one."""
    _, returning = _nodes(story)
    began = time.monotonic()
    returning.start()
    returning.until("it follows", "sync_standby")
    return Fault("Patroni: the old primary coming back", began, time.monotonic())


def _lose(story: Story, old: Node, new: Node, while_it_lags: Callable[[], object]) -> Fault:
    receiver = new.receiver()
    receiver.suspend()
    while_it_lags()
    began = time.monotonic()
    old.kill()
    receiver.send_signal(signal.SIGTERM)  # WAL that is not yet received does not arrive
    receiver.resume()
    new.until("it leads", "leads")
    story.server = new
    return Fault("Patroni: kill -9 of the primary", began, time.monotonic(), crash=True)


def _until_commits_wait(primary: Node) -> None:
    sql = "select exists (select from pg_stat_activity where wait_event = 'SyncRep')"
    wait_until(lambda: primary.value(sql), "a commit waits for the standby", deadline=DEADLINE)


def _nodes(story: Story) -> tuple[Node, Node]:
    """Return the node that leads and the other one."""
    other = next(server for server in story.servers if server is not story.server)
    assert isinstance(story.server, Node)
    assert isinstance(other, Node)
    return story.server, other
