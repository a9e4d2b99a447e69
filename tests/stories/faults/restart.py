"""Restart: the server ends at once, as with `pg_ctl stop -m immediate`, and comes back.

Perhaps with a worker of the same machine, which is up before the server and waits for it.
"""

from __future__ import annotations

import time

from tests.stories.fleet import LEASE
from tests.stories.history import Fault
from tests.stories.story import Story


def restart_server(story: Story) -> Fault:
    began = time.monotonic()
    story.server.crash()
    story.server.start()
    return Fault("immediate shutdown and restart", began, time.monotonic(), crash=True)


def long_outage(story: Story) -> Fault:
    """The server is away for longer than a lease: nobody may be given up for that."""
    story.start_long_jobs(3 * LEASE)
    began = time.monotonic()
    story.server.crash()
    time.sleep(2 * LEASE)
    story.server.start()
    return Fault("outage of twice the lease", began, time.monotonic(), crash=True)


def restart_with_worker(story: Story) -> Fault:
    """A machine with the server and a worker on it restarts, and the worker is up first."""
    victim = story.chance.choice(story.fleet.workers)
    began = time.monotonic()
    story.server.crash()
    story.fleet.kill(victim)
    story.fleet.until_it_says(story.fleet.add_worker(), "worker.waiting")
    story.server.start()
    kills = frozenset({victim.pid})
    name = "restart of the server and a worker"
    return Fault(name, began, time.monotonic(), kills=kills, crash=True)
