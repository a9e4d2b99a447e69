"""The detail screen is read again when a person presses refresh."""

from __future__ import annotations

from howdah import Queue
from tests.top.support import Gate, register_gated, top


async def test_refresh_reads_a_worker_again_although_no_poll_is_due(queue: Queue) -> None:
    gate = Gate()
    register_gated(queue, "resize", gate, 40, "encoding")
    async with queue.worker(worker_id="w1"), top(queue, clock=lambda: 0.0) as view:
        await view.press("3")
        await view.refresh_until("w1")
        await view.press("enter")
        await view.refresh_until("worker  w1")
        await queue.enqueue("resize")
        await view.refresh_until("40%", "encoding")
        gate.open()
