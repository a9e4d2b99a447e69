"""Chaos: the worker is killed every few seconds, and the server restarts once.

A worker that is killed cannot clean up: its jobs are still claimed, and its sessions end when the
server notices. The restart is an ordinary one: it cuts all sessions off.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from bench.driver_process import DriverFailed
from bench.server import RestartablePostgres
from bench.stress.stresses import Scale
from bench.stress.worker_slot import WorkerSlot

Event = tuple[float, Callable[[], None]]  # seconds since the stress began, and what happens


@contextmanager
def chaos(slot: WorkerSlot, server: RestartablePostgres, scale: Scale) -> Generator[None]:
    """Let all events happen while the block runs. It ends after the last of them."""

    def kill() -> None:
        with suppress(DriverFailed):  # the next one could not start: the supervisor tries again
            slot.kill()

    def restart() -> None:
        server.stop()
        server.start()

    events = [*((at, kill) for at in scale.kills), (scale.restart, restart)]
    with ThreadPoolExecutor(1, "chaos") as thread:
        happening = thread.submit(_happen, sorted(events, key=_time))
        yield
        happening.result()


def _happen(events: list[Event]) -> None:
    began = time.monotonic()
    for at, event in events:
        time.sleep(max(0.0, began + at - time.monotonic()))
        event()


def _time(event: Event) -> float:
    return event[0]
