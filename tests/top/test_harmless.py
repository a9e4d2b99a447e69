"""Text from the database is shown as it is written: never markup, never an escape sequence."""

from __future__ import annotations

import pytest
from psycopg import connect

from howdah import Queue
from howdah.text.printable import one_line
from howdah.top import formatting
from tests.top.support import Gate, register_gated, top

MARKUP = "[bold red]x[/] [@click=app.quit]y[/]"
ESCAPES = "\x1b[2J\x1b]0;title\x07\x9b31m\u202eback\u2028"


@pytest.mark.parametrize("char", [chr(n) for n in (*range(32), *range(0x7F, 0xA0), 0x202E, 0x2028)])
def test_no_control_character_reaches_the_terminal(char: str) -> None:
    cleaned = formatting.clean(f"a{char}b")
    assert cleaned.isprintable() or cleaned == "a\nb"
    assert one_line(f"a{char}b").isprintable()


async def test_markup_in_types_errors_stages_and_workers_stays_text(queue: Queue) -> None:
    gate = Gate()
    register_gated(queue, MARKUP, gate, 30, MARKUP + ESCAPES)
    await queue.enqueue(MARKUP)
    await queue.enqueue("waits")
    await queue.enqueue("fails", max_attempts=1)
    (job,) = await queue.claim(["fails"], worker_id="someone")
    await queue.fail(job, f"Error: {MARKUP} {ESCAPES}")
    await queue.pause("waits", f"{MARKUP}{ESCAPES}")
    async with queue.worker(worker_id=f"w {MARKUP}"), top(queue, (130, 40)) as view:
        await gate.entered.wait()
        await view.refresh_until(f"waits is paused ({MARKUP}\\x1b[2J", f" {MARKUP[:25]}")
        await view.press("2")
        await view.refresh_until(MARKUP[:20], "30%")  # the row: a claimed job is listed soon after
        for key in ("c", "p"):
            await view.press(key)
            await view.wait_for(f"the type {MARKUP}" if key == "c" else f"Pause {MARKUP}?")
            await view.press("n")
        await view.press("w")
        await view.wait_for(f"running on w {MARKUP}", "\\x1b[2J")
        await view.press("escape", "enter")
        await view.wait_for(f"type  {MARKUP}", f"worker  w {MARKUP}")
        await view.press("escape", "3")
        await view.wait_for(f"w {MARKUP}"[:20])
        await view.press("d", "y")
        await view.wait_for(f"Asked w {MARKUP} to stop")
        await view.press("4")
        await view.wait_for(f"Error: {MARKUP} \\x1b[2J")
        await view.press("enter")
        await view.wait_for(f"Error: {MARKUP} \\x1b[2J\\x1b]0;title\\x07\\x9b31m\\u202eback")
        assert view.app.is_running
        assert all(line.isprintable() for line in view.lines)
        gate.open()


async def test_a_foreign_worker_may_have_any_info(queue: Queue, dsn: str) -> None:
    with connect(dsn, autocommit=True) as other:
        other.execute(
            "select howdah.beat(%s, p_info => %s::jsonb)",
            [
                "strange",
                '{"slots": [1], "job_types": "x", "running": {"a": 1}, "host": "[b]\\u001b"}',
            ],
        )
        other.execute("select howdah.beat('list', p_info => '[1, 2]'::jsonb)")
    async with top(queue, (170, 30)) as view:
        await view.press("3")
        await view.wait_for("strange", "list", "[b]\\x1b")
        await view.press("enter")
        await view.wait_for("host  [b]\\x1b")
