"""Text from the database is shown as it is written: never markup, never an escape sequence."""

from __future__ import annotations

import pytest
from psycopg import connect

from howdah import Queue
from howdah.text.printable import one_line
from howdah.top import words
from tests.top.support import Gate, gated, top

NASTY = "[bold red]x[/] [@click=app.quit]y[/]"
STEERING = "\x1b[2J\x1b]0;title\x07\x9b31m\u202eback\u2028"


@pytest.mark.parametrize("char", [chr(n) for n in (*range(32), *range(0x7F, 0xA0), 0x202E, 0x2028)])
def test_no_character_steers_the_terminal(char: str) -> None:
    made = words.clean(f"a{char}b")
    assert made.isprintable() or made == "a\nb"
    assert one_line(f"a{char}b").isprintable()


async def test_nasty_types_errors_stages_and_workers_stay_text(queue: Queue) -> None:
    gate = Gate()
    gated(queue, NASTY, gate, 30, NASTY + STEERING)
    await queue.enqueue(NASTY)
    await queue.enqueue("waits")
    await queue.enqueue("fails", max_attempts=1)
    (job,) = await queue.claim(["fails"], worker_id="someone")
    await queue.fail(job, f"Error: {NASTY} {STEERING}")
    await queue.pause("waits", f"{NASTY}{STEERING}")
    async with queue.worker(worker_id=f"w {NASTY}"), top(queue, (130, 40)) as shown:
        await gate.entered.wait()
        await shown.looks_until(f"waits is paused ({NASTY}\\x1b[2J", f" {NASTY[:25]}")
        await shown.press("2")
        await shown.looks_until(NASTY[:20])
        for key in ("c", "p"):
            await shown.press(key)
            await shown.sees(f"the type {NASTY}" if key == "c" else f"Pause {NASTY}?")
            await shown.press("n")
        await shown.press("w")
        await shown.sees(f"running on w {NASTY}", "\\x1b[2J")
        await shown.press("escape", "enter")
        await shown.sees(f"type  {NASTY}", f"worker  w {NASTY}")
        await shown.press("escape", "3")
        await shown.sees(f"w {NASTY}"[:20])
        await shown.press("d", "y")
        await shown.sees(f"Asked w {NASTY} to stop")
        await shown.press("4")
        await shown.sees(f"Error: {NASTY} \\x1b[2J")
        await shown.press("enter")
        await shown.sees(f"Error: {NASTY} \\x1b[2J\\x1b]0;title\\x07\\x9b31m\\u202eback")
        assert shown.app.is_running
        assert all(line.isprintable() for line in shown.lines)
        gate.open()


async def test_a_worker_of_another_make_may_say_anything_of_itself(queue: Queue, dsn: str) -> None:
    with connect(dsn, autocommit=True) as other:
        other.execute(
            "select howdah.beat(%s, p_info => %s::jsonb)",
            [
                "strange",
                '{"slots": [1], "job_types": "x", "running": {"a": 1}, "host": "[b]\\u001b"}',
            ],
        )
        other.execute("select howdah.beat('list', p_info => '[1, 2]'::jsonb)")
    async with top(queue, (170, 30)) as shown:
        await shown.press("3")
        await shown.sees("strange", "list", "[b]\\x1b")
        await shown.press("enter")
        await shown.sees("host  [b]\\x1b")
