"""Kill: end a process with -9 in the middle of whatever it does, and start another in its place."""

from __future__ import annotations

import time

import psutil

from tests.stories.history import Fault
from tests.stories.story import Story


def kill_worker(story: Story) -> Fault:
    """A worker with jobs in its hands."""
    began = time.monotonic()
    victim = story.chance.choice(story.fleet.workers)
    story.fleet.kill(victim)
    story.fleet.add_worker()
    return Fault("kill -9 of a worker", began, time.monotonic(), kills=frozenset({victim.pid}))


def kill_producer(story: Story) -> Fault:
    """A producer, at a random moment of what it hands over."""
    began = time.monotonic()
    time.sleep(story.chance.uniform(0, 0.2))
    victim = story.chance.choice(story.fleet.producers)
    story.fleet.kill(victim)
    story.fleet.add_producer(30.0)
    return Fault("kill -9 of a producer", began, time.monotonic(), kills=frozenset({victim.pid}))


def kill_upkeep(story: Story) -> Fault:
    """The worker that does the upkeep, at the moment its round is on its way."""
    began = time.monotonic()
    port = story.proxy.wait_for(r"howdah\.upkeep", 30)
    assert port is not None, "nobody does any upkeep"
    victim = next(worker for worker in story.fleet.workers if has_port(worker.pid, port))
    story.fleet.kill(victim)
    story.fleet.add_worker()
    name = "kill -9 of a worker during upkeep"
    return Fault(name, began, time.monotonic(), kills=frozenset({victim.pid}))


def has_port(pid: int, port: int) -> bool:
    connections = psutil.Process(pid).net_connections("tcp")
    return any(connection.laddr.port == port for connection in connections)
