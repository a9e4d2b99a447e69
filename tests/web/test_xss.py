"""Whatever is written into a queue is text on every page of its dashboard, and nothing runs.

The browser is told to ignore the Content-Security-Policy: what must not run does not run because it
is never more than text, and the policy is a second wall behind that.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import quote, urlencode
from uuid import UUID

import pytest
from playwright.async_api import Browser, Page

from howdah import Fail, JobContext, Queue, observe
from howdah.states import State
from howdah.web import pages
from tests.support.waiting import eventually
from tests.web.serving import Served

TRIES = (
    "</title></textarea><script>hack()</script>",
    '"><img src=x onerror=hack()>',
    "'><svg onload=hack()>",
)
LINK = "javascript:hack()//"  # what a link must not lead to
WATCH = """
window.hack = () => { window.hacked = (window.hacked || 0) + 1 };
document.addEventListener("howdah:drawn", () => { window.drawn = true });
"""
FOREIGN = """
() => [
  ...document.querySelectorAll("img, iframe, object, script:not([src]), svg[onload], [onerror]"),
  ...[...document.querySelectorAll("a[href]")].filter((a) => !a.protocol.startsWith("http")),
  ...[...document.querySelectorAll("form[action], [formaction]")].filter((one) =>
    new URL(one.getAttribute("formaction") ?? one.getAttribute("action"), location).origin
      !== location.origin),
].map((element) => element.outerHTML)
"""


def evil(place: str, start: str = "") -> str:
    """Text for one place, with everything in it that somebody could try."""
    return f"{start}{place}{''.join(TRIES)}"


@dataclass
class Seeded:
    """What a malicious colleague has left in the queue."""

    jobs: list[str]
    types: list[str]
    workers: list[str]
    texts: list[str]  # each is to be seen somewhere, as it is


@pytest.fixture
async def seeded(queue: Queue) -> AsyncGenerator[Seeded]:
    types, workers = [evil("type"), f"{LINK}type"], [evil("worker", LINK)]

    for job_type in types:

        @queue.job(name=job_type)
        async def talk(ctx: JobContext, do: str, said: dict[str, str]) -> dict[str, str]:
            await ctx.progress(40, evil("stage"))
            await ctx.emit(evil("kind"), {evil("event key"): evil("event value")})
            if do == "fail":
                raise Fail(evil("error"), traceback=evil("traceback"))
            if do == "stay":
                await asyncio.Event().wait()
            return {evil("result key"): evil("result value")}

    said = {evil("payload key"): evil("payload value"), "link": LINK}
    wanted = {"fail": State.FAILED, "stay": State.RUNNING, "end": State.COMPLETED}
    handles = [
        (await queue.enqueue(job_type, {"do": do, "said": said}), state)
        for job_type in types
        for do, state in wanted.items()
        if job_type == types[0] or do == "stay"
    ]
    async with queue.worker(worker_id=workers[0], grace=timedelta()):
        for handle, state in handles:
            await eventually(lambda: _is(queue, handle.id, state))  # noqa: B023
        await eventually(lambda: _says(queue, handles[1][0].id))
        await observe.pause(queue.store, types[0], evil("reason"), evil("by"))
        yield Seeded(
            jobs=[str(handle.id) for handle, _ in handles],
            types=types,
            workers=workers,
            texts=[
                *types,
                *workers,
                *(evil(place) for place in ("stage", "kind", "error", "traceback", "reason", "by")),
                *(
                    json.dumps(evil(f"{place} {part}"))
                    for place in ("payload", "event", "result")
                    for part in ("key", "value")
                ),
                json.dumps(LINK),
            ],
        )


async def _is(queue: Queue, id: UUID, state: State) -> bool:
    return (await queue.get(id)).status is state


async def _says(queue: Queue, id: UUID) -> bool:
    job = await queue.get(id)
    return job.progress == 40 and job.events_count == 1


def paths(seeded: Seeded) -> list[str]:
    """Every page of the dashboard, for everything there is, also with evil questions."""
    values = {"id": seeded.jobs, "worker_id": seeded.workers, "job_type": seeded.types}
    found: list[str] = []
    for page in pages.all_pages():
        made = [""]
        for part in re.split(r"(\{[^}]*\})", page.path):
            name = part.strip("{}").partition(":")[0]
            ends = [quote(one) for one in values[name]] if part.startswith("{") else [part]
            made = [begin + end for begin in made for end in ends]
        found += made
    fields = ("find", "error", "type", "job_type", "worker_id", "fingerprint", "level")
    asked = {field: evil(field) for field in fields} | {"action": "cancel"}
    bad = {**asked, "priority": evil("priority"), "created_from": LINK, "payload": evil("=")}
    seeing = [path for path in found if path != "/jobs/matching"]
    return [
        *seeing,
        *(f"{path}?{urlencode(asked)}" for path in found if path.count("/") == 1),
        f"/jobs/matching?{urlencode(asked)}",
        f"/jobs?{urlencode(bad)}",
        f"/jobs/matching?{urlencode(bad)}",
        f"/jobs/{quote(evil('id'), safe='')}",
        f"/nowhere/{quote(evil('path'), safe='')}",
    ]


@pytest.mark.timeout(400)
async def test_nothing_that_is_written_into_a_queue_runs_in_the_dashboard(
    browser: Browser, web: Served, seeded: Seeded
) -> None:
    context = await browser.new_context(bypass_csp=True)
    await context.add_init_script(WATCH)
    page = await context.new_page()
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    await page.goto(web.entrance)
    seen = ""
    for path in paths(seeded):
        flash = {"name": "howdah_said", "value": quote(evil("flash")), "url": web.url}
        await context.add_cookies([flash])  # pyright: ignore[reportArgumentType]
        answer = await page.goto(web.url + path)
        assert answer is not None
        assert answer.status < 500, path
        seen += await _looked_at(page, path)
    assert dialogs == []
    for text in [*seeded.texts, evil("flash"), f"“{LINK}” is no time", evil("id")]:
        assert text in seen, text
    await context.close()


LIVE = 120_000  # milliseconds: a page that was slow to draw is drawn again after a long rest


async def _looked_at(page: Page, path: str) -> str:
    """Look at a page as it comes, and again after it was drawn live; returns its words."""
    await _clean(page, path)
    if "?" not in path and await page.locator('meta[name="howdah-live"]').count():
        await page.wait_for_function("window.drawn", timeout=LIVE)
        await _clean(page, path)
    return await page.title() + (await page.locator("body").text_content() or "")


async def _clean(page: Page, path: str) -> None:
    assert await page.evaluate(FOREIGN) == [], path
    assert await page.evaluate("window.hacked") is None, path


async def test_the_trap_springs_where_text_is_not_escaped(browser: Browser) -> None:
    """The test above would see it: the same text, put into a page as markup, does run."""
    context = await browser.new_context(bypass_csp=True)
    await context.add_init_script(WATCH)
    page = await context.new_page()
    for html in (*TRIES, f"<a href={LINK}>x</a>"):
        await page.goto("about:blank")
        await page.set_content(f'<title>x</title><p data-x="{html}">{html}</p>')
        hacked = await page.evaluate("window.hacked")
        foreign = await page.evaluate(FOREIGN)
        assert hacked or foreign, html
    await context.close()
