"""Each key acts in the database, asks before, and says afterwards what was moved."""

from __future__ import annotations

from howdah import JobContext, Queue, observe
from howdah.top import deeds
from howdah.top.board import Board
from tests.support.waiting import eventually
from tests.top.support import Gate, Shown, failed, gated, has_status, status, top


async def test_c_cancels_a_running_job(queue: Queue) -> None:
    gate = Gate()
    gated(queue, "resize", gate)
    handle = await queue.enqueue("resize")
    async with queue.worker(), top(queue) as shown:
        await gate.entered.wait()
        await shown.press("2")
        await shown.looks_until(str(handle.id)[-8:])
        await shown.press("c")
        await shown.sees("Cancel this job of the type resize?", str(handle.id))
        assert await status(queue, handle.id) in ("claimed", "running")
        await shown.press("y")
        await shown.sees(f"Cancelled resize {handle.id}.")
        job = await queue.get(handle.id)
        assert (job.status, job.last_error) == ("cancelled", "cancelled in howdah top")


async def test_no_means_no(queue: Queue) -> None:
    id = await failed(queue, "resize")
    async with top(queue) as shown:
        for key in ("n", "escape"):
            await shown.press("r")
            await shown.sees("y yes   n no")
            await shown.press("enter", key)
            await shown.sees("Nothing was done.")
        assert await status(queue, id) == "failed"


async def test_a_job_that_ended_meanwhile_is_not_said_to_be_cancelled(queue: Queue) -> None:
    gate = Gate()
    gated(queue, "resize", gate)
    handle = await queue.enqueue("resize")
    async with queue.worker(), top(queue) as shown:
        await gate.entered.wait()
        await shown.press("2")
        await shown.looks_until(str(handle.id)[-8:])
        await shown.press("c")
        await shown.sees("y yes")
        gate.open()
        await eventually(has_status(queue, handle.id, "completed"), "it ended")
        await shown.press("y")
        await shown.sees(f"resize {handle.id} had ended already.")
        assert await status(queue, handle.id) == "completed"


async def test_r_requeues_the_jobs_of_a_group_and_no_others(queue: Queue) -> None:
    alike = [await failed(queue, "charge", f"Timeout: gateway {n}") for n in range(3)]
    other = await failed(queue, "charge", "KeyError: card")
    async with top(queue) as shown:
        await shown.press("4")
        await shown.sees("KeyError", "Timeout")
        await shown.press("down", "r")
        await shown.sees("Give 3 jobs of the type charge that failed like this")
        await shown.press("y")
        await shown.sees("Requeued 3 jobs of the type charge that failed like this.")
    assert [await status(queue, id) for id in alike] == ["pending"] * 3
    assert await status(queue, other) == "failed"


async def test_r_over_a_type_requeues_all_that_failed(queue: Queue) -> None:
    ids = [await failed(queue, "charge", f"{n} Error {'x' * n}") for n in range(3)]
    other = await failed(queue, "other")
    async with top(queue) as shown:
        await shown.sees("charge")
        await shown.press("r")
        await shown.sees("Give 3 jobs of the type charge that failed one more attempt each?")
        await shown.press("y")
        await shown.sees("Requeued 3 jobs of the type charge that failed.")
    assert [await status(queue, id) for id in ids] == ["pending"] * 3
    assert await status(queue, other) == "failed"


async def test_p_pauses_a_type_and_resumes_it(queue: Queue) -> None:
    await queue.enqueue("resize")
    async with top(queue) as shown:
        await shown.sees("resize")
        await shown.press("p")
        await shown.sees("Pause resize?")
        assert not await observe.paused(queue.store)
        await shown.press("y")
        await shown.sees("Paused resize.", "resize paused")
        assert "resize" in await observe.paused(queue.store)
        await shown.press("p")
        await shown.sees("Resume resize?")
        await shown.press("y")
        await shown.sees("Resumed resize.")
        assert not await observe.paused(queue.store)


async def test_d_drains_a_worker(queue: Queue) -> None:
    gate = Gate()
    gated(queue, "resize", gate)
    await queue.enqueue("resize")
    async with queue.worker(worker_id="w1"), top(queue) as shown:
        await gate.entered.wait()
        await shown.press("3")
        await shown.looks_until("alive")
        await shown.press("d")
        await shown.sees("Drain the worker w1?")
        await shown.press("y")
        await shown.sees("Asked w1 to stop when its jobs have ended.", "draining")
        gate.open()


async def test_w_says_why_of_a_type_and_of_a_job(queue: Queue) -> None:
    gate = Gate()
    gated(queue, "resize", gate, 40, "encoding")
    await queue.enqueue("unheard")
    await queue.enqueue("resize")
    async with queue.worker(worker_id="w1"), top(queue) as shown:
        await gate.entered.wait()
        await shown.looks_until("unheard")
        await shown.press("end", "w")
        await shown.sees("No live worker knows the type unheard.")
        await shown.press("escape", "2")
        await shown.looks_until("encoding")
        await shown.press("w")
        await shown.sees("It has been running on w1 for")
        gate.open()


async def test_enter_shows_a_job_with_its_life_its_errors_and_its_events(queue: Queue) -> None:
    @queue.job(max_attempts=1)
    async def charge(ctx: JobContext, amount: int) -> None:
        await ctx.emit("asked", {"gateway": 7})
        raise ValueError("card refused")

    handle = await charge.enqueue(amount=12345678901234567890)
    async with queue.worker(worker_id="w1"):
        await eventually(has_status(queue, handle.id, "failed"), "it failed")
    async with top(queue, (80, 50)) as shown:
        await shown.press("4")
        await shown.sees("card refused")
        await shown.press("enter")
        await shown.sees(
            *(str(handle.id), "Timeline", "waiting", "running, attempt 1", "failed  w1"),
            *("ValueError: card refused", "Traceback (most recent call last)", "in charge"),
            *('"amount": 12345678901234567890', "Events", "asked", '{"gateway":7}'),
        )
        await shown.press("r")
        await shown.sees("Give this job of the type charge one more attempt?")
        await shown.press("y")
        await shown.sees(f"Requeued charge {handle.id}", "pending")
        assert await status(queue, handle.id) == "pending"
        await shown.press("c")
        await shown.sees("Cancel this job")
        await shown.press("y")
        await shown.sees("cancelled")
        await shown.press("escape")
        await shown.sees("1 Types")


async def test_enter_shows_a_type_and_a_worker(queue: Queue) -> None:
    gate = Gate()
    gated(queue, "resize", gate, 40, "encoding")
    await queue.enqueue("resize")
    await queue.enqueue("archive", priority=7)
    async with queue.worker(worker_id="w1"), top(queue) as shown:
        await gate.entered.wait()
        await shown.looks_until("archive", "resize")
        await shown.press("enter")
        await shown.looks_until(
            "type  archive", "No live worker knows", "In line, by priority", " 7 "
        )
        await shown.press("escape", "3")
        await shown.looks_until("w1")
        await shown.press("enter")
        await shown.looks_until("worker  w1", "At work", "resize", "40%", "encoding")
        gate.open()


async def test_read_only_neither_shows_nor_takes_keys_that_change_something(queue: Queue) -> None:
    gate = Gate()
    gated(queue, "resize", gate)
    running = await queue.enqueue("resize")
    bad = await failed(queue, "charge")
    async with queue.worker(worker_id="w1"), top(queue, read_only=True) as shown:
        await gate.entered.wait()
        assert "read-only" in shown.lines[0]
        for pane, row in (("1", "charge"), ("2", "resize"), ("3", "w1"), ("4", "charge")):
            await shown.press(pane)
            await shown.looks_until(row)
            await _cannot_act(shown)
            if pane in "24":
                await shown.press("enter")
                await shown.sees("Timeline")
                await _cannot_act(shown)
                await shown.press("escape")
                await shown.sees("1 Types")
        await shown.press("?")
        await shown.sees("nothing can be changed from here")
        assert "cancel a job" not in shown.text
        assert await status(queue, bad) == "failed"
        assert await status(queue, running.id) in ("claimed", "running")
        assert not await observe.paused(queue.store)
        assert not any(one.draining for one in await observe.crew(queue.store))
        gate.open()


async def test_read_only_refuses_a_deed_however_it_was_asked_for(queue: Queue) -> None:
    handle = await queue.enqueue("resize")
    async with top(queue, read_only=True) as shown:
        screen = shown.app.screen
        assert isinstance(screen, Board)
        screen.act(lambda: deeds.cancel(queue, handle.id, "resize"))
        await shown.sees("Read-only: nothing can be changed from here.")
        assert "y yes" not in shown.text
    assert await status(queue, handle.id) == "pending"


async def _cannot_act(shown: Shown) -> None:
    await shown.sees("? Help")
    footer = shown.lines[-1]
    assert "? Help" in footer
    assert not any(word in footer for word in ("Cancel", "Requeue", "Pause", "Drain"))
    for key in "crpd":
        await shown.press(key, "y")
        assert "y yes" not in shown.text


async def test_the_help_lists_the_keys(queue: Queue) -> None:
    async with top(queue) as shown:
        await shown.press("?")
        await shown.sees("cancel a job", "requeue failed jobs", "pause a type", "drain a worker")


async def test_q_and_ctrl_c_leave(queue: Queue) -> None:
    for key in ("q", "ctrl+c"):
        async with top(queue) as shown:
            await shown.press(key)
            await eventually(lambda shown=shown: not shown.app.is_running, f"left by {key}")
            assert shown.app.return_code == 0
