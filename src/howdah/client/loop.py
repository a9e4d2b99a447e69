"""Loop: the fastest event loop of this platform: uvloop if it is installed."""

from __future__ import annotations

try:
    from uvloop import new_event_loop
except ImportError:  # not on every platform
    from asyncio import new_event_loop

__all__ = ["new_event_loop"]
