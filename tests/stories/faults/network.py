"""Network: connections that are cut, half open, held or slow."""

from __future__ import annotations

import time

from tests.stories.history import Fault
from tests.stories.story import Story
from tests.support.fleet import LEASE


def cut_connections(story: Story) -> Fault:
    """Cut every connection several times; sometimes refuse new ones for a moment."""
    began = time.monotonic()
    for _ in range(5):
        story.proxy.refusing = story.rng.random() < 0.5
        story.proxy.cut()
        time.sleep(story.rng.uniform(0.05, 0.5))
    story.proxy.refusing = False
    return Fault("connections cut", began, time.monotonic())


def half_open_connections(story: Story) -> Fault:
    """The server's side is closed, but the client does not notice until a timeout."""
    began = time.monotonic()
    story.proxy.half_open()
    return Fault("connections half open", began, time.monotonic(), silences_all=True)


def black_hole(story: Story) -> Fault:
    """No message passes for twice the lease, then all arrive: no worker may be given up."""
    story.start_long_jobs(3 * LEASE)
    began = time.monotonic()
    story.proxy.held = True
    time.sleep(2 * LEASE)
    story.proxy.held = False
    return Fault("black hole for twice the lease", began, time.monotonic())


def slow_network(story: Story) -> Fault:
    """Every message is delayed. No worker may be given up for that."""
    began = time.monotonic()
    story.proxy.slow = 0.03
    story.work(20)
    story.proxy.slow = 0.0
    return Fault("slow network", began, time.monotonic())
