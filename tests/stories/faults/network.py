"""Network: connections that are cut, left half open, swallowed, slowed down."""

from __future__ import annotations

import time

from tests.stories.fleet import LEASE
from tests.stories.history import Fault
from tests.stories.story import Story


def cut_connections(story: Story) -> Fault:
    """Every connection ends, again and again, and for a moment nobody gets in."""
    began = time.monotonic()
    for _ in range(5):
        story.proxy.refusing = story.chance.random() < 0.5
        story.proxy.cut()
        time.sleep(story.chance.uniform(0.05, 0.5))
    story.proxy.refusing = False
    return Fault("connections cut", began, time.monotonic())


def half_open_connections(story: Story) -> Fault:
    """The other side is gone and nobody says so: only patience can find out."""
    began = time.monotonic()
    story.proxy.half_open()
    return Fault("connections half open", began, time.monotonic(), silences_all=True)


def black_hole(story: Story) -> Fault:
    """Nothing passes for longer than a lease, then all of it arrives: nobody is given up."""
    story.start_long_jobs(3 * LEASE)
    began = time.monotonic()
    story.proxy.held = True
    time.sleep(2 * LEASE)
    story.proxy.held = False
    return Fault("black hole for twice the lease", began, time.monotonic())


def slow_network(story: Story) -> Fault:
    """Every message takes its time. Nobody may be given up for that."""
    began = time.monotonic()
    story.proxy.slow = 0.03
    story.work(20)
    story.proxy.slow = 0.0
    return Fault("slow network", began, time.monotonic())
