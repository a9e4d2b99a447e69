"""Skew this process's clock by STORY_CLOCK_OFFSET seconds, before anything else is imported.

Python runs a module of this name by itself when it is found on PYTHONPATH. The monotonic
clock does not change, as with a clock that is set wrong.
"""

from __future__ import annotations

import os
import time

_OFFSET = int(os.environ["STORY_CLOCK_OFFSET"])
_time, _time_ns = time.time, time.time_ns


def _skewed_time() -> float:
    return _time() + _OFFSET


def _skewed_time_ns() -> int:
    return _time_ns() + _OFFSET * 1_000_000_000


time.time, time.time_ns = _skewed_time, _skewed_time_ns
