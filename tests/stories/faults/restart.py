"""Restart: the server ends as with `pg_ctl stop -m immediate`, and starts again.

In one fault a worker restarts too. It is up before the server, and waits for it.
"""

from __future__ import annotations

import time

from tests.stories.history import Fault
from tests.stories.story import Story
from tests.support.fleet import LEASE


def restart_server(story: Story) -> Fault:
    began = time.monotonic()
    story.server.crash()
    story.server.start()
    return Fault("immediate shutdown and restart", began, time.monotonic(), crash=True)


def long_outage(story: Story) -> Fault:
    """The server is down for twice the lease: no worker may be given up for that."""
    story.start_long_jobs(3 * LEASE)
    began = time.monotonic()
    story.server.crash()
    time.sleep(2 * LEASE)
    story.server.start()
    return Fault("outage of twice the lease", began, time.monotonic(), crash=True)


def restart_with_worker(story: Story) -> Fault:
    """The machine of the server and of a worker restarts, and the worker is up first."""
    process = story.rng.choice(story.fleet.workers)
    began = time.monotonic()
    story.server.crash()
    story.fleet.kill(process)
    story.fleet.wait_for_log(story.fleet.add_worker(), "worker.waiting")
    story.server.start()
    kills = frozenset({process.pid})
    name = "restart of the server and a worker"
    return Fault(name, began, time.monotonic(), kills=kills, crash=True)
