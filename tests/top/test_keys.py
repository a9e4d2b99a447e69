"""Each key asks first, changes the database, and says what it changed."""

from __future__ import annotations

from howdah import JobContext, Queue, observe
from howdah.top import actions
from howdah.top.live_screen import LiveScreen
from tests.support.waiting import eventually
from tests.top.support import Gate, TopView, failed, has_status, register_gated, status, top


async def test_c_cancels_a_running_job(queue: Queue) -> None:
    gate = Gate()
    register_gated(queue, "resize", gate)
    handle = await queue.enqueue("resize")
    async with queue.worker(), top(queue) as view:
        await gate.entered.wait()
        await view.press("2")
        await view.refresh_until(str(handle.id)[-8:])
        await view.press("c")
        await view.wait_for("Cancel this job of the type resize?", str(handle.id))
        assert await status(queue, handle.id) in ("claimed", "running")
        await view.press("y")
        await view.wait_for(f"Cancelled resize {handle.id}.")
        job = await queue.get(handle.id)
        assert (job.status, job.last_error) == ("cancelled", "cancelled in howdah top")


async def test_n_and_escape_change_nothing(queue: Queue) -> None:
    id = await failed(queue, "resize")
    async with top(queue) as view:
        for key in ("n", "escape"):
            await view.press("r")
            await view.wait_for("y yes   n no")
            await view.press("enter", key)
            await view.wait_for("Nothing was changed.")
        assert await status(queue, id) == "failed"


async def test_a_job_that_ended_meanwhile_is_not_reported_as_cancelled(queue: Queue) -> None:
    gate = Gate()
    register_gated(queue, "resize", gate)
    handle = await queue.enqueue("resize")
    async with queue.worker(), top(queue) as view:
        await gate.entered.wait()
        await view.press("2")
        await view.refresh_until(str(handle.id)[-8:])
        await view.press("c")
        await view.wait_for("y yes")
        gate.open()
        await eventually(has_status(queue, handle.id, "completed"), "it ended")
        await view.press("y")
        await view.wait_for(f"resize {handle.id} had already ended.")
        assert await status(queue, handle.id) == "completed"


async def test_r_requeues_the_jobs_of_a_group_and_no_others(queue: Queue) -> None:
    same_error = [await failed(queue, "charge", f"Timeout: gateway {n}") for n in range(3)]
    other = await failed(queue, "charge", "KeyError: card")
    async with top(queue) as view:
        await view.press("4")
        await view.wait_for("KeyError", "Timeout")
        await view.press("down", "r")
        await view.wait_for("Give 3 jobs of the type charge that failed with this error")
        await view.press("y")
        await view.wait_for("Requeued 3 jobs of the type charge that failed with this error.")
    assert [await status(queue, id) for id in same_error] == ["pending"] * 3
    assert await status(queue, other) == "failed"


async def test_r_on_a_type_requeues_all_its_failed_jobs(queue: Queue) -> None:
    ids = [await failed(queue, "charge", f"{n} Error {'x' * n}") for n in range(3)]
    other = await failed(queue, "other")
    async with top(queue) as view:
        await view.wait_for("charge")
        await view.press("r")
        await view.wait_for("Give 3 jobs of the type charge that failed one more attempt each?")
        await view.press("y")
        await view.wait_for("Requeued 3 jobs of the type charge that failed.")
    assert [await status(queue, id) for id in ids] == ["pending"] * 3
    assert await status(queue, other) == "failed"


async def test_p_pauses_a_type_and_resumes_it(queue: Queue) -> None:
    await queue.enqueue("resize")
    async with top(queue) as view:
        await view.wait_for("resize")
        await view.press("p")
        await view.wait_for("Pause resize?")
        assert not await observe.paused(queue.store)
        await view.press("y")
        await view.wait_for("Paused resize.", "resize paused")
        assert "resize" in await observe.paused(queue.store)
        await view.press("p")
        await view.wait_for("Resume resize?")
        await view.press("y")
        await view.wait_for("Resumed resize.")
        assert not await observe.paused(queue.store)


async def test_d_drains_a_worker(queue: Queue) -> None:
    gate = Gate()
    register_gated(queue, "resize", gate)
    await queue.enqueue("resize")
    async with queue.worker(worker_id="w1"), top(queue) as view:
        await gate.entered.wait()
        await view.press("3")
        await view.refresh_until("alive")
        await view.press("d")
        await view.wait_for("Drain the worker w1?")
        await view.press("y")
        await view.wait_for("Asked w1 to stop once its jobs have ended.", "draining")
        gate.open()


async def test_w_explains_a_type_and_a_job(queue: Queue) -> None:
    gate = Gate()
    register_gated(queue, "resize", gate, 40, "encoding")
    await queue.enqueue("unknown")
    await queue.enqueue("resize")
    async with queue.worker(worker_id="w1"), top(queue) as view:
        await gate.entered.wait()
        await view.refresh_until("unknown")
        await view.press("end", "w")
        await view.wait_for("No live worker knows the type unknown.")
        await view.press("escape", "2")
        await view.refresh_until("encoding")
        await view.press("w")
        await view.wait_for("It has been running on w1 for")
        gate.open()


async def test_enter_shows_a_job_with_its_history_its_errors_and_its_events(queue: Queue) -> None:
    @queue.job(max_attempts=1)
    async def charge(ctx: JobContext, amount: int) -> None:
        await ctx.emit("asked", {"gateway": 7})
        raise ValueError("card refused")

    handle = await charge.enqueue(amount=12345678901234567890)
    async with queue.worker(worker_id="w1"):
        await eventually(has_status(queue, handle.id, "failed"), "it failed")
    async with top(queue, (80, 50)) as view:
        await view.press("4")
        await view.wait_for("card refused")
        await view.press("enter")
        await view.wait_for(
            *(str(handle.id), "Timeline", "waiting", "running, attempt 1", "failed  w1"),
            *("ValueError: card refused", "Traceback (most recent call last)", "in charge"),
            *('"amount": 12345678901234567890', "Events", "asked", '{"gateway":7}'),
        )
        await view.press("r")
        await view.wait_for("Give this job of the type charge one more attempt?")
        await view.press("y")
        await view.wait_for(f"Requeued charge {handle.id}", "pending")
        assert await status(queue, handle.id) == "pending"
        await view.press("c")
        await view.wait_for("Cancel this job")
        await view.press("y")
        await view.wait_for("cancelled")
        await view.press("escape")
        await view.wait_for("1 Types")


async def test_enter_shows_a_type_and_a_worker(queue: Queue) -> None:
    gate = Gate()
    register_gated(queue, "resize", gate, 40, "encoding")
    await queue.enqueue("resize")
    await queue.enqueue("archive", priority=7)
    async with queue.worker(worker_id="w1"), top(queue) as view:
        await gate.entered.wait()
        await view.refresh_until("archive", "resize")
        await view.press("enter")
        await view.refresh_until(
            "type  archive", "No live worker knows", "Waiting, by priority", " 7 "
        )
        await view.press("escape", "3")
        await view.refresh_until("w1")
        await view.press("enter")
        await view.refresh_until("worker  w1", "Running", "resize", "40%", "encoding")
        gate.open()


async def test_read_only_neither_shows_nor_takes_keys_that_change_something(queue: Queue) -> None:
    gate = Gate()
    register_gated(queue, "resize", gate)
    running = await queue.enqueue("resize")
    failed_id = await failed(queue, "charge")
    async with queue.worker(worker_id="w1"), top(queue, read_only=True) as view:
        await gate.entered.wait()
        assert "read-only" in view.lines[0]
        for pane, row in (("1", "charge"), ("2", "resize"), ("3", "w1"), ("4", "charge")):
            await view.press(pane)
            await view.refresh_until(row)
            await _check_no_actions(view)
            if pane in "24":
                await view.press("enter")
                await view.wait_for("Timeline")
                await _check_no_actions(view)
                await view.press("escape")
                await view.wait_for("1 Types")
        await view.press("?")
        await view.wait_for("nothing can be changed here")
        assert "cancel a job" not in view.text
        assert await status(queue, failed_id) == "failed"
        assert await status(queue, running.id) in ("claimed", "running")
        assert not await observe.paused(queue.store)
        assert not any(worker.draining for worker in await observe.workers(queue.store))
        gate.open()


async def test_read_only_refuses_an_action_that_no_key_offers(queue: Queue) -> None:
    handle = await queue.enqueue("resize")
    async with top(queue, read_only=True) as view:
        screen = view.app.screen
        assert isinstance(screen, LiveScreen)
        screen.perform(lambda: actions.cancel(queue, handle.id, "resize"))
        await view.wait_for("Read-only: nothing can be changed here.")
        assert "y yes" not in view.text
    assert await status(queue, handle.id) == "pending"


async def _check_no_actions(view: TopView) -> None:
    await view.wait_for("? Help")
    footer = view.lines[-1]
    assert "? Help" in footer
    assert not any(word in footer for word in ("Cancel", "Requeue", "Pause", "Drain"))
    for key in "crpd":
        await view.press(key, "y")
        assert "y yes" not in view.text


async def test_the_help_lists_the_keys(queue: Queue) -> None:
    async with top(queue) as view:
        await view.press("?")
        await view.wait_for("cancel a job", "requeue failed jobs", "pause a type", "drain a worker")


async def test_q_and_ctrl_c_end_it(queue: Queue) -> None:
    for key in ("q", "ctrl+c"):
        async with top(queue) as view:
            await view.press(key)
            await eventually(lambda view=view: not view.app.is_running, f"{key} ends it")
            assert view.app.return_code == 0
