"""Freeze: stop a worker for twice its lease, and let it go on as if nothing had happened."""

from __future__ import annotations

import signal
import time

from tests.stories.fleet import LEASE
from tests.stories.history import Fault
from tests.stories.story import Story


def freeze_worker(story: Story) -> Fault:
    """Its jobs go to others, and what it reports afterwards must change nothing."""
    began = time.monotonic()
    victim = story.chance.choice(story.fleet.workers)
    victim.send_signal(signal.SIGSTOP)
    time.sleep(2 * LEASE)
    victim.send_signal(signal.SIGCONT)
    name = "SIGSTOP of a worker for twice its lease"
    return Fault(name, began, time.monotonic(), silences=frozenset({victim.pid}))
