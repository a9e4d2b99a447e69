"""Loop: the fastest event loop this platform has, uvloop where it can be had."""

from __future__ import annotations

try:
    from uvloop import new_event_loop
except ImportError:  # not on every platform
    from asyncio import new_event_loop

__all__ = ["new_event_loop"]
