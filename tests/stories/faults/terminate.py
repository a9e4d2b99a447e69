"""Terminate: an administrator ends every session of the database, twice a second."""

from __future__ import annotations

import time

from tests.stories.history import Fault
from tests.stories.story import Story

SECONDS = 2.5

ALL_BUT_US = """
    select count(pg_terminate_backend(pid)) from pg_stat_activity
    where datname = current_database() and application_name <> 'story'
"""


def terminate_backends(story: Story) -> Fault:
    began = time.monotonic()
    while time.monotonic() < began + SECONDS:
        story.value(ALL_BUT_US)
        time.sleep(0.5)
    return Fault("pg_terminate_backend twice a second", began, time.monotonic())
