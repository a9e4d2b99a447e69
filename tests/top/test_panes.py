"""Each pane shows what it should, at 80x24 and on wide screens."""

from __future__ import annotations

import re

from howdah import JobContext, Queue
from tests.top.support import WIDE, Gate, failed, gated, top


async def test_an_empty_queue_says_what_to_do(queue: Queue) -> None:
    async with top(queue) as shown:
        await shown.sees("No jobs yet", "howdah enqueue hello", "howdah worker", "howdah demo")
        await shown.press("2")
        await shown.sees("No worker is alive. Start one:  howdah worker")
        await shown.press("3")
        await shown.sees("No worker is alive. Start one:  howdah worker")
        await shown.press("4")
        await shown.sees("No job has failed.")


async def test_types_with_what_waits_what_is_paused_and_what_nobody_knows(queue: Queue) -> None:
    for _ in range(3):
        await queue.enqueue("resize")
    await queue.enqueue("archive")
    await queue.pause("archive", "disk is full")
    async with top(queue) as shown:
        await shown.sees("resize no worker", "archive paused")
        assert re.search(r"resize no worker +3 ", shown.line("resize no worker"))
        assert "4 waiting" in shown.lines[0]
        assert "0 workers" in shown.lines[0]


async def test_the_worst_problem_stands_in_the_second_line_and_all_behind_a_key(
    queue: Queue,
) -> None:
    waiting = await queue.enqueue("archive")
    await queue.pause("archive", "disk is full")
    async with top(queue) as shown:
        await shown.sees("▲ archive is paused (disk is full), and 1 job waits.")
        assert shown.lines[1].startswith("▲ ")
        await shown.press("!")
        await shown.sees("`howdah resume archive` when it may go on.")
        await shown.press("escape")
        await queue.resume("archive")
        await waiting.cancel()  # no worker knows its type, which is a problem once it has waited
        await shown.looks_until("✓ nothing to worry about")


async def test_progress_moves_by_itself(queue: Queue) -> None:
    begun, on = Gate(), Gate()

    @queue.job
    async def resize(ctx: JobContext) -> None:
        await ctx.progress(40, "encoding")
        await begun.pass_through()
        await ctx.progress(90, "writing")
        await on.pass_through()

    handle = await resize.enqueue()
    async with queue.worker(worker_id="w1"), top(queue) as shown:
        await shown.press("2")
        await shown.sees("40%", "encoding", str(handle.id)[-8:])
        begun.open()
        await shown.sees("90%", "writing")
        assert shown.line("writing").count("━") == 9
        on.open()
        await shown.sees("Nothing is at work.")


async def test_workers_alive_busy_draining_and_of_another_make(queue: Queue) -> None:
    gate = Gate()
    gated(queue, "resize", gate)
    await queue.enqueue("resize")
    await queue.enqueue("foreign")
    await queue.claim(["foreign"], worker_id="go-worker")
    async with queue.worker(worker_id="w1", concurrency=7), top(queue) as shown:
        await gate.entered.wait()
        await shown.press("3")
        await shown.looks_until("1/7")
        assert re.search(r"w1 +alive +1/7 +1 ", shown.line("w1 "))
        assert "foreign" in shown.line("go-worker")
        assert "1 worker " in shown.lines[0]
        gate.open()


async def test_the_same_errors_together(queue: Queue) -> None:
    for n in (1, 2, 3):
        await failed(queue, "charge", f"Timeout: gateway {n} said nothing")
    await failed(queue, "charge", "KeyError: card")
    async with top(queue) as shown:
        await shown.sees("4 Failures 4")
        await shown.press("4")
        await shown.sees("KeyError: card")
        assert re.search(r"charge +3 .*Timeout: gateway", shown.line("Timeout"))
        assert re.search(r"charge +1 .*KeyError", shown.line("KeyError"))


async def test_errors_that_are_being_retried_are_told_apart_from_failed_ones(queue: Queue) -> None:
    await queue.enqueue("charge")
    (job,) = await queue.claim(["charge"], worker_id="someone")
    await queue.fail(job, "Timeout: gateway 1 said nothing", delay=3600)
    async with top(queue) as shown:
        await shown.press("4")
        await shown.looks_until("retrying  Timeout")
        await shown.press("r")
        await shown.sees("retried by themselves")


async def test_long_names_are_cut_and_every_column_has_its_place_at_80_columns(
    queue: Queue,
) -> None:
    name = "a_type_with_a_name_that_is_longer_than_any_column_" * 2
    await queue.enqueue(name[:90])
    async with top(queue) as shown:
        await shown.sees("a_type_with", "q Quit")
        heading = shown.line("TYPE")
        assert heading.split() == [
            *("TYPE", "WAITING", "OLDEST", "RUNNING", "JOBS/S", "FAILED", "RUN", "P99")
        ]
        assert "…" in shown.line("a_type_with_a")
        assert max(map(len, shown.lines)) <= 80
        assert len(shown.lines) == 24
        assert "q Quit" in shown.lines[-1]  # no key falls off the footer


async def test_a_wide_screen_shows_more(queue: Queue) -> None:
    await queue.enqueue("resize")
    async with top(queue, WIDE) as shown:
        await shown.sees("PICKUP P99", "LAST HOUR", "DONE TODAY")
        await shown.pilot.resize_terminal(80, 24)
        await shown.sees("resize")
        assert "LAST HOUR" not in shown.text


async def test_a_part_of_a_type_filters_every_pane(queue: Queue) -> None:
    for name, worker_id in (("resize_image", "painter"), ("send_mail", "postman")):
        await failed(queue, name)
        await queue.enqueue(name)
        await queue.claim([name], worker_id=worker_id)
    async with top(queue) as shown:
        for pane in "1234":
            await shown.press(pane)
            mine, other = ("painter", "postman") if pane == "3" else ("resize_image", "send_mail")
            await shown.sees(mine, other)
            await shown.press("slash", *"IZE", "enter")
            await shown.sees("/IZE", mine)
            assert other not in shown.text
            await shown.press("escape")
            await shown.sees(mine, other)
        await shown.press("slash", *"nope", "enter")
        await shown.sees("Nothing here is of a type with “nope” in its name")


async def test_the_cursor_stays_on_its_row_when_others_come_before_it(queue: Queue) -> None:
    for name in ("m1", "m2", "m3"):
        await queue.enqueue(name)
    async with top(queue) as shown:
        await shown.sees("m3")
        await shown.press("down")
        await queue.enqueue("a0")
        await shown.looks_until("a0")
        await shown.press("p")
        await shown.sees("Pause m2?")


async def test_the_page_stays_where_it_is_when_rows_come_and_go(queue: Queue) -> None:
    for n in range(60):
        await queue.enqueue(f"m{n:02}")
    async with top(queue) as shown:
        await shown.sees("m00")
        await shown.press("end")
        await shown.sees("m59")
        assert "m00" not in shown.text
        await queue.enqueue("z_new")
        await shown.looks_until("1 Types 61")
        await shown.sees("m59")
        assert "m00" not in shown.text
        await shown.press("p")
        await shown.sees("Pause m59?")


async def test_panes_turn_in_both_directions(queue: Queue) -> None:
    async with top(queue) as shown:
        for key, heading in (
            *(("tab", "STAGE"), ("tab", "BEAT"), ("right", "ERROR"), ("tab", "WAITING")),
            *(("left", "ERROR"), ("shift+tab", "BEAT"), ("1", "WAITING")),
        ):
            await shown.press(key)
            await shown.sees(heading)


async def test_only_colours_of_the_terminal_are_used(queue: Queue) -> None:
    """Whatever the terminal's background is, its own colours are readable on it."""
    await failed(queue, "resize")
    await queue.enqueue("archive")
    await queue.pause("archive")
    async with top(queue) as shown:
        for keys in ("1", "2", "3", "4", "enter", "w", "escape", "escape", "?", "escape", "slash"):
            await shown.press(keys)
            await shown.pilot.pause()
            colours = {
                colour
                for segment in shown.segments
                if segment.style
                for colour in (segment.style.color, segment.style.bgcolor)
                if colour is not None
            }
            painted = [one.name for one in colours if one.triplet is not None]
            assert not painted, f"after {keys}: {painted}"
