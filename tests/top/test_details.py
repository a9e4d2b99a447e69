"""The detail screen is read again when a person presses refresh."""

from __future__ import annotations

from rich.console import Console, Group

from howdah import Queue
from howdah.observe import job_history
from howdah.top import detail_text
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


async def test_a_job_shows_its_key_its_limit_and_what_it_waits_for(queue: Queue) -> None:
    await queue.store.fetchval("select howdah.set_limit('api', 5)")
    await queue.store.fetchval("select howdah.set_type_limit('mail', 1, p_limit => 'api')")
    handles = [await queue.enqueue("mail", key="[bold]\u202e7") for _ in range(2)]
    for _ in range(2):
        await queue.store.fetch("select * from howdah.admit()")
    shown = detail_text.job(await job_history(queue.store, handles[1].id), "It is next.")
    printed = " ".join(text_of(shown).split())
    assert r"key [bold]\u202e7 limit api waits for a slot of its key. It is next." in printed


def text_of(group: Group) -> str:
    console = Console(width=100, color_system=None)
    with console.capture() as captured:
        console.print(group)
    return captured.get()
