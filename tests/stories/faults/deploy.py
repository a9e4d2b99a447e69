"""Deploy: workers with another version of the code, which declares other rules of keys and limits.

The worker that starts last decides. So the rules change when a worker of the later version starts,
and again when one of the first version takes the place of another.
"""

from __future__ import annotations

import time

from tests.stories.history import Fault
from tests.stories.story import Story


def deploy_and_go_back(story: Story) -> Fault:
    began = time.monotonic()
    later = story.fleet.add_worker(STORY_RULES="later")
    story.fleet.wait_for_log(later, "worker.started")
    story.work(100)
    first = story.fleet.add_worker()
    story.fleet.wait_for_log(first, "worker.started")
    story.fleet.stop_process(later)
    story.work(50)
    story.fleet.stop_process(first)
    return Fault("a later version of the code, and back", began, time.monotonic())
