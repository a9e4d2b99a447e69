"""Freeze: SIGSTOP for a worker for twice its lease, then SIGCONT."""

from __future__ import annotations

import signal
import time

from tests.stories.history import Fault
from tests.stories.story import Story
from tests.support.fleet import LEASE


def freeze_worker(story: Story) -> Fault:
    """Its jobs go to other workers. What it reports afterwards must change nothing."""
    began = time.monotonic()
    process = story.rng.choice(story.fleet.workers)
    process.send_signal(signal.SIGSTOP)
    time.sleep(2 * LEASE)
    process.send_signal(signal.SIGCONT)
    name = "SIGSTOP of a worker for twice its lease"
    return Fault(name, began, time.monotonic(), silences=frozenset({process.pid}))
