"""A screen about one thing shows what is true now when a person asks to look."""

from __future__ import annotations

from howdah import Queue
from tests.top.support import Gate, gated, top


async def test_look_now_reads_a_worker_anew_although_nothing_is_due(queue: Queue) -> None:
    gate = Gate()
    gated(queue, "resize", gate, 40, "encoding")
    async with queue.worker(worker_id="w1"), top(queue, clock=lambda: 0.0) as shown:
        await shown.press("3")
        await shown.looks_until("w1")
        await shown.press("enter")
        await shown.looks_until("worker  w1")
        await queue.enqueue("resize")
        await shown.looks_until("40%", "encoding")
        gate.open()
