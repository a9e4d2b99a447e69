"""Any text in a queue is shown as text on every page of the dashboard; no script runs.

The browser ignores the Content-Security-Policy here, so the test proves that the text is escaped.
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

from howdah import Fail, JobContext, Queue
from howdah.admit import named_limit
from howdah.states import State
from howdah.store import admit as store_admit
from howdah.store import steer
from howdah.web import pages
from tests.support.waiting import eventually
from tests.web.serving import Served

TRIES = (
    "</title></textarea><script>hack()</script>",
    '"><img src=x onerror=hack()>',
    "'><svg onload=hack()>",
)
LINK = "javascript:hack()//"  # must not become the target of a link
WATCH = """
window.hack = () => { window.hacked = (window.hacked || 0) + 1 };
document.addEventListener("howdah:drawn", () => { window.drawn = true });
"""
FOREIGN = """
() => [
  ...document.querySelectorAll("img, iframe, object, script:not([src]), svg[onload], [onerror]"),
  ...[...document.querySelectorAll("a[href]")].filter((a) => !a.protocol.startsWith("http")),
  ...[...document.querySelectorAll("form[action], [formaction]")].filter((form) =>
    new URL(form.getAttribute("formaction") ?? form.getAttribute("action"), location).origin
      !== location.origin),
].map((element) => element.outerHTML)
"""


def hostile_text(place: str, start: str = "") -> str:
    """Return a text for one place that contains every known attack."""
    return f"{start}{place}{''.join(TRIES)}"


@dataclass
class Seeded:
    """The hostile content of the queue."""

    jobs: list[str]
    types: list[str]
    workers: list[str]
    limits: list[str]
    texts: list[str]  # each must be visible on some page, unchanged


@pytest.fixture
async def seeded(queue: Queue) -> AsyncGenerator[Seeded]:
    limit = hostile_text("limit")
    types, workers = [hostile_text("type"), f"{LINK}type"], [hostile_text("worker", LINK)]

    for job_type in types:

        @queue.job(name=job_type)
        async def talk(ctx: JobContext, do: str, words: dict[str, str]) -> dict[str, str]:
            await ctx.progress(40, hostile_text("stage"))
            await ctx.emit(
                hostile_text("kind"), {hostile_text("event key"): hostile_text("event value")}
            )
            if do == "fail":
                raise Fail(hostile_text("error"), traceback=hostile_text("traceback"))
            if do == "stay":
                await asyncio.Event().wait()
            return {hostile_text("result key"): hostile_text("result value")}

    keys, limit = [hostile_text("key"), hostile_text("key", LINK)], hostile_text("limit")
    limited_type = hostile_text("limited type")
    limited = await _enqueue_limited(queue, limited_type, keys, limit)
    words = {hostile_text("payload key"): hostile_text("payload value"), "link": LINK}
    wanted = {"fail": State.FAILED, "stay": State.RUNNING, "end": State.COMPLETED}
    handles = [
        (await queue.enqueue(job_type, {"do": do, "words": words}), state)
        for job_type in types
        for do, state in wanted.items()
        if job_type == types[0] or do == "stay"
    ]
    async with queue.worker(worker_id=workers[0], grace=timedelta()):
        for handle, state in handles:
            await eventually(lambda: _is(queue, handle.id, state))  # noqa: B023
        await eventually(lambda: _says(queue, handles[1][0].id))
        await steer.pause(queue.store, types[0], hostile_text("reason"), hostile_text("by"))
        await store_admit.set_limit(
            queue.store, named_limit(limit, 1, None, True), hostile_text("by")
        )
        await queue.set_type_limit(types[0], at_once=2, limit=limit)
        await queue.set_type_limit(types[1], limit=limit)
        yield Seeded(
            jobs=[*(str(handle.id) for handle, _ in handles), *limited],
            types=[*types, limited_type],
            workers=workers,
            limits=[limit],
            texts=[
                *types,
                *workers,
                *keys,
                limit,
                *(
                    hostile_text(place)
                    for place in ("stage", "kind", "error", "traceback", "reason", "by")
                ),
                *(
                    json.dumps(hostile_text(f"{place} {part}"))
                    for place in ("payload", "event", "result")
                    for part in ("key", "value")
                ),
                json.dumps(LINK),
            ],
        )


async def _enqueue_limited(queue: Queue, job_type: str, keys: list[str], limit: str) -> list[str]:
    """Enqueue jobs that wait for the limit or for each key; returns their ids."""
    await queue.store.fetchval("select howdah.set_limit($1, 1)", limit)
    set_rule = "select howdah.set_type_limit($1, 1, p_limit => $2)"
    await queue.store.fetchval(set_rule, job_type, limit)
    handles = [await queue.enqueue(job_type, key=key) for key in keys * 2]
    for _ in range(2):
        await queue.store.fetch("select * from howdah.admit()")
    return [str(handle.id) for handle in handles[1:]]  # the first one waits for a worker


async def _is(queue: Queue, id: UUID, state: State) -> bool:
    return (await queue.get(id)).status is state


async def _says(queue: Queue, id: UUID) -> bool:
    job = await queue.get(id)
    return job.progress == 40 and job.events_count == 1


def paths(seeded: Seeded) -> list[str]:
    """Return every page of the dashboard, also with hostile query parameters."""
    values = {
        "id": seeded.jobs,
        "worker_id": seeded.workers,
        "job_type": seeded.types,
        "limit_name": seeded.limits,
    }
    page_paths: list[str] = []
    for page in pages.all_pages():
        prefixes = [""]
        for part in re.split(r"(\{[^}]*\})", page.path):
            name = part.strip("{}").partition(":")[0]
            ends = [quote(value) for value in values[name]] if part.startswith("{") else [part]
            prefixes = [begin + end for begin in prefixes for end in ends]
        page_paths += prefixes
    fields = ("find", "error", "type", "job_type", "worker_id", "fingerprint", "level", "key")
    query = {field: hostile_text(field) for field in (*fields, "limited_by")} | {"action": "cancel"}
    bad = {
        **query,
        "priority": hostile_text("priority"),
        "waits_for": hostile_text("waits_for"),
        "created_from": LINK,
        "payload": hostile_text("="),
    }
    plain = [path for path in page_paths if path != "/jobs/matching"]
    return [
        *plain,
        *(f"{path}?{urlencode(query)}" for path in page_paths if path.count("/") == 1),
        f"/jobs/matching?{urlencode(query)}",
        f"/jobs?{urlencode(bad)}",
        f"/jobs/matching?{urlencode(bad)}",
        f"/jobs/{quote(hostile_text('id'), safe='')}",
        f"/nowhere/{quote(hostile_text('path'), safe='')}",
    ]


@pytest.mark.timeout(400)
async def test_no_text_in_a_queue_runs_in_the_dashboard(
    browser: Browser, web: Served, seeded: Seeded
) -> None:
    context = await browser.new_context(bypass_csp=True)
    await context.add_init_script(WATCH)
    page = await context.new_page()
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    await page.goto(web.login_link)
    visible = ""
    for path in paths(seeded):
        flash = {"name": "howdah_flash", "value": quote(hostile_text("flash")), "url": web.url}
        await context.add_cookies([flash])  # pyright: ignore[reportArgumentType]
        answer = await page.goto(web.url + path)
        assert answer is not None
        assert answer.status < 500, path
        visible += await _visible_text(page, path)
    assert dialogs == []
    for text in [*seeded.texts, hostile_text("flash"), f"“{LINK}” is no time", hostile_text("id")]:
        assert text in visible, text
    await context.close()


LIVE = 120_000  # milliseconds: a page rests for long after a slow rendering


async def _visible_text(page: Page, path: str) -> str:
    """Open a page, wait for a live update, check it both times; returns its visible text."""
    await _clean(page, path)
    if "?" not in path and await page.locator('meta[name="howdah-live"]').count():
        await page.wait_for_function("window.drawn", timeout=LIVE)
        await _clean(page, path)
    return await page.title() + (await page.locator("body").text_content() or "")


async def _clean(page: Page, path: str) -> None:
    assert await page.evaluate(FOREIGN) == [], path
    assert await page.evaluate("window.hacked") is None, path


async def test_the_check_detects_text_that_is_not_escaped(browser: Browser) -> None:
    """The same text does run if a page contains it as markup, so the test above can fail."""
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
