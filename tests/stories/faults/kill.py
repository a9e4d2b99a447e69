"""Kill: end a process with SIGKILL at any moment, and start another one."""

from __future__ import annotations

import time

import psutil

from tests.stories.history import Fault
from tests.stories.story import Story


def kill_worker(story: Story) -> Fault:
    """Kill a worker that holds jobs."""
    began = time.monotonic()
    process = story.rng.choice(story.fleet.workers)
    story.fleet.kill(process)
    story.fleet.add_worker()
    return Fault("kill -9 of a worker", began, time.monotonic(), kills=frozenset({process.pid}))


def kill_producer(story: Story) -> Fault:
    """Kill a producer at a random moment."""
    began = time.monotonic()
    time.sleep(story.rng.uniform(0, 0.2))
    process = story.rng.choice(story.fleet.producers)
    story.fleet.kill(process)
    story.fleet.add_producer(30.0)
    return Fault("kill -9 of a producer", began, time.monotonic(), kills=frozenset({process.pid}))


def kill_upkeep(story: Story) -> Fault:
    """Kill the worker that does the upkeep, while its call is under way."""
    began = time.monotonic()
    port = story.proxy.wait_for(r"howdah\.upkeep", 30)
    assert port is not None, "no worker called upkeep within 30 s"
    process = next(worker for worker in story.fleet.workers if has_port(worker.pid, port))
    story.fleet.kill(process)
    story.fleet.add_worker()
    name = "kill -9 of a worker during upkeep"
    return Fault(name, began, time.monotonic(), kills=frozenset({process.pid}))


def has_port(pid: int, port: int) -> bool:
    connections = psutil.Process(pid).net_connections("tcp")
    return any(connection.laddr.port == port for connection in connections)
