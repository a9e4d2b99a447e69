"""Ids: time-ordered uuids (version 7), rising within a process.

Made in the client so that a draft knows its id before anything is sent. The order within
one transaction rests on them: jobs with the same place stand in line by id.
"""

from __future__ import annotations

import os
import threading
import time
from uuid import UUID

_lock = threading.Lock()
_last = 0
_VERSION_7 = 7 << 76
_VARIANT = 2 << 62


def new_id() -> UUID:
    """Make an id above every id this process made before."""
    global _last
    # 48 bits of milliseconds, then 74 bits that start at random and rise within the millisecond.
    # The topmost of them starts clear: a process would have to make 2**73 ids in a millisecond.
    moment = (time.time_ns() // 1_000_000) << 74
    with _lock:
        if moment > _last:
            _last = moment | int.from_bytes(os.urandom(9)) << 1
        else:
            _last += 1
        value = _last
    milliseconds, high, low = value >> 74, value >> 62 & 0xFFF, value & (1 << 62) - 1
    return UUID(int=milliseconds << 80 | _VERSION_7 | high << 64 | _VARIANT | low)
