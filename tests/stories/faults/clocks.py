"""Clocks: clients an hour ahead and an hour late, beside clients with correct clocks."""

from __future__ import annotations

import subprocess
import time

from tests.stories.history import Fault
from tests.stories.story import Story
from tests.support.fleet import SKEWED_CLOCK

HOUR = 3600


def skew_clocks(story: Story) -> Fault:
    began = time.monotonic()
    processes: list[subprocess.Popen[bytes]] = []
    for offset in (HOUR, -HOUR):
        environment = {"PYTHONPATH": str(SKEWED_CLOCK), "STORY_CLOCK_OFFSET": str(offset)}
        processes.append(story.fleet.add_worker(**environment))
        processes.append(story.fleet.add_producer(30.0, **environment))
    story.work(100)
    for process in processes:
        story.fleet.stop_process(process)
    return Fault("client clocks an hour off, both ways", began, time.monotonic())
