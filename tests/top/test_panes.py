"""Each pane shows its data, at 80x24 and on wide screens."""

from __future__ import annotations

import re

from howdah import JobContext, Queue
from tests.support.waiting import eventually
from tests.top.support import WIDE, Gate, TopView, failed, register_gated, top


async def test_an_empty_queue_says_what_to_do(queue: Queue) -> None:
    async with top(queue) as view:
        await view.wait_for("No jobs yet", "howdah enqueue hello", "howdah worker", "howdah demo")
        await view.press("2")
        await view.wait_for("No worker is alive. Start one:  howdah worker")
        await view.press("3")
        await view.wait_for("No worker is alive. Start one:  howdah worker")
        await view.press("4")
        await view.wait_for("No job has failed.")


async def test_types_show_waiting_jobs_pauses_and_missing_workers(queue: Queue) -> None:
    for _ in range(3):
        await queue.enqueue("resize")
    await queue.enqueue("archive")
    await queue.pause("archive", "disk is full")
    async with top(queue) as view:
        await view.wait_for("resize no worker", "archive paused")
        assert re.search(r"resize no worker +3 ", view.line("resize no worker"))
        assert "4 waiting" in view.lines[0]
        assert "0 workers" in view.lines[0]


async def test_the_second_line_shows_the_worst_problem_and_a_key_shows_all(
    queue: Queue,
) -> None:
    waiting = await queue.enqueue("archive")
    await queue.pause("archive", "disk is full")
    async with top(queue) as view:
        await view.wait_for("▲ archive is paused (disk is full), and 1 job waits.")
        assert view.lines[1].startswith("▲ ")
        await view.press("!")
        await view.wait_for("`howdah resume archive` when it may go on.")
        await view.press("escape")
        await queue.resume("archive")
        await waiting.cancel()  # no worker knows its type, which is a problem once it has waited
        await view.refresh_until("✓ no problems")


async def test_progress_is_updated_by_itself(queue: Queue) -> None:
    first_gate, second_gate = Gate(), Gate()

    @queue.job
    async def resize(ctx: JobContext) -> None:
        await ctx.progress(40, "encoding")
        await first_gate.enter_and_wait()
        await ctx.progress(90, "writing")
        await second_gate.enter_and_wait()

    handle = await resize.enqueue()
    async with queue.worker(worker_id="w1"), top(queue) as view:
        await view.press("2")
        await view.wait_for("40%", "encoding", str(handle.id)[-8:])
        first_gate.open()
        await view.wait_for("90%", "writing")
        assert view.line("writing").count("━") == 9
        second_gate.open()
        await view.wait_for("No job is running.")


async def test_workers_show_their_state_and_foreign_workers_are_marked(queue: Queue) -> None:
    gate = Gate()
    register_gated(queue, "resize", gate)
    await queue.enqueue("resize")
    await queue.enqueue("foreign")
    await queue.claim(["foreign"], worker_id="go-worker")
    async with queue.worker(worker_id="w1", concurrency=7), top(queue) as view:
        await gate.entered.wait()
        await view.press("3")
        await view.refresh_until("1/7")
        assert re.search(r"w1 +alive +1/7 +1 ", view.line("w1 "))
        assert "foreign" in view.line("go-worker")
        assert "1 worker " in view.lines[0]
        gate.open()


async def test_equal_errors_are_grouped(queue: Queue) -> None:
    for n in (1, 2, 3):
        await failed(queue, "charge", f"Timeout: gateway {n} said nothing")
    await failed(queue, "charge", "KeyError: card")
    async with top(queue) as view:
        await view.wait_for("4 Failures 4")
        await view.press("4")
        await view.wait_for("KeyError: card")
        assert re.search(r"charge +3 .*Timeout: gateway", view.line("Timeout"))
        assert re.search(r"charge +1 .*KeyError", view.line("KeyError"))


async def test_errors_of_retried_jobs_are_marked(queue: Queue) -> None:
    await queue.enqueue("charge")
    (job,) = await queue.claim(["charge"], worker_id="someone")
    await queue.fail(job, "Timeout: gateway 1 said nothing", delay=3600)
    async with top(queue) as view:
        await view.press("4")
        await view.refresh_until("retrying  Timeout")
        await view.press("r")
        await view.wait_for("Workers retry them")


async def test_long_names_are_cut_and_every_column_fits_80_columns(
    queue: Queue,
) -> None:
    name = "a_type_with_a_name_that_is_longer_than_any_column_" * 2
    await queue.enqueue(name[:90])
    async with top(queue) as view:
        await view.wait_for("a_type_with", "q Quit")
        heading = view.line("TYPE")
        assert heading.split() == [
            *("TYPE", "WAITING", "OLDEST", "RUNNING", "JOBS/S", "FAILED", "RUN", "P99")
        ]
        assert "…" in view.line("a_type_with_a")
        assert max(map(len, view.lines)) <= 80
        assert len(view.lines) == 24
        assert "q Quit" in view.lines[-1]  # the footer has room for every key


async def test_a_wide_screen_shows_more(queue: Queue) -> None:
    await queue.enqueue("resize")
    async with top(queue, WIDE) as view:
        await view.wait_for("PICKUP P99", "LAST HOUR", "DONE TODAY")
        await view.pilot.resize_terminal(80, 24)
        await view.wait_for("resize")
        assert "LAST HOUR" not in view.text


async def test_a_part_of_a_type_name_filters_every_pane(queue: Queue) -> None:
    for name, worker_id in (("resize_image", "painter"), ("send_mail", "postman")):
        await failed(queue, name)
        await queue.enqueue(name)
        await queue.claim([name], worker_id=worker_id)
    async with top(queue) as view:
        for pane in "1234":
            await view.press(pane)
            matching, other = (
                ("painter", "postman") if pane == "3" else ("resize_image", "send_mail")
            )
            await view.wait_for(matching, other)
            await view.press("slash", *"IZE", "enter")
            await view.wait_for("/IZE", matching)
            assert other not in view.text
            await view.press("escape")
            await view.wait_for(matching, other)
        await view.press("slash", *"nope", "enter")
        await view.wait_for("No type here has “nope” in its name")


async def test_the_name_of_a_queue_filters_the_types(queue: Queue) -> None:
    await queue.store.fetchval(
        """select howdah.register_job_types('me', '[{"name": "resize", "queue": "media"}]')"""
    )
    await queue.enqueue("resize")
    await queue.enqueue("letters")
    async with top(queue, WIDE) as view:
        await view.wait_for("resize", "letters", "media")
        await view.press("slash", *"MEDIA", "enter")
        await view.wait_for("/MEDIA", "resize")
        assert "letters" not in view.text
        await view.press("enter")
        await view.wait_for("queue  media")


async def test_the_cursor_stays_on_its_row_when_others_come_before_it(queue: Queue) -> None:
    for name in ("m1", "m2", "m3"):
        await queue.enqueue(name)
    async with top(queue) as view:
        await view.wait_for("m3")
        await view.press("down")
        await queue.enqueue("a0")
        await view.refresh_until("a0")
        await view.press("p")
        await view.wait_for("Pause m2?")


async def test_the_scroll_position_stays_when_rows_are_added(queue: Queue) -> None:
    for n in range(60):
        await queue.enqueue(f"m{n:02}")
    async with top(queue) as view:
        await view.wait_for("m00")
        await view.press("end")
        await view.wait_for("m59")
        assert "m00" not in view.text
        await queue.enqueue("z_new")
        await view.refresh_until("1 Types 61")
        await view.wait_for("m59")
        assert "m00" not in view.text
        await view.press("p")
        await view.wait_for("Pause m59?")


async def test_keys_switch_panes_in_both_directions(queue: Queue) -> None:
    async with top(queue) as view:
        for key, heading in (
            *(("tab", "STAGE"), ("tab", "BEAT"), ("right", "ERROR"), ("tab", "WAITING")),
            *(("left", "ERROR"), ("shift+tab", "BEAT"), ("1", "WAITING")),
        ):
            await view.press(key)
            await view.wait_for(heading)


async def test_only_colours_of_the_terminal_are_used(queue: Queue) -> None:
    """Whatever the terminal's background is, its own colours are readable on it."""
    await failed(queue, "resize")
    await queue.enqueue("archive")
    await queue.pause("archive")
    async with top(queue) as view:
        for keys in ("1", "2", "3", "4", "enter", "w", "escape", "escape", "?", "escape", "slash"):
            await view.press(keys)
            await eventually(
                lambda: not rgb_colours(view), lambda keys=keys: f"{rgb_colours(view)} after {keys}"
            )


def rgb_colours(view: TopView) -> list[str]:
    """Return the colours on the screen that are not the terminal's own."""
    colours = {
        colour
        for segment in view.segments
        if segment.style
        for colour in (segment.style.color, segment.style.bgcolor)
        if colour is not None
    }
    return [colour.name for colour in colours if colour.triplet is not None]


async def test_jobs_that_wait_for_a_key_are_counted_and_explained(queue: Queue) -> None:
    for _ in range(3):
        await queue.enqueue("resize", key="tenant-7")
    await queue.store.fetch("select * from howdah.admit()")
    async with top(queue, size=(100, 30)) as view:
        await view.wait_for("LIMITED", "resize")
        assert re.search(r"resize no worker +1 +\S+ +2 ", view.line("resize"))
        await view.press("enter")
        await view.wait_for("2 wait for a slot of their key")
