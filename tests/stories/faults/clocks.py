"""Clocks: clients an hour ahead and an hour behind, beside those whose clocks are right."""

from __future__ import annotations

import subprocess
import time

from tests.stories.fleet import SKEWED
from tests.stories.history import Fault
from tests.stories.story import Story

HOUR = 3600


def skew_clocks(story: Story) -> Fault:
    began = time.monotonic()
    crew: list[subprocess.Popen[bytes]] = []
    for offset in (HOUR, -HOUR):
        environment = {"PYTHONPATH": str(SKEWED), "STORY_CLOCK_OFFSET": str(offset)}
        crew.append(story.fleet.add_worker(**environment))
        crew.append(story.fleet.add_producer(30.0, **environment))
    story.work(100)
    for process in crew:
        story.fleet.let_go(process)
    return Fault("client clocks an hour off, both ways", began, time.monotonic())
