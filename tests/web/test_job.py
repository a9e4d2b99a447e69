"""The page of a job: its history, its payload and result, and its actions."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any
from uuid import UUID, uuid4

import httpx
import msgspec
import pytest
from playwright.async_api import Page, expect

from howdah import Backoff, JobContext, Queue, observe
from howdah.observe import JobHistory, Kind, Span
from howdah.observe.raw import raw_job
from howdah.states import State
from howdah.web import dashboard, timeline
from tests.support.waiting import eventually
from tests.web.axe import axe_finds_nothing
from tests.web.forms import flash_text, send
from tests.web.serving import Served, open_access

BIG = "12345678901234567890123"
DATA = f'{{"big": {BIG}, "price": 1.10, "card": {{"Number": "4111", "kind": "visa"}}}}'


def visible_text(html: str) -> str:
    """Return the visible text of a page."""
    return " ".join(unescape(re.sub(r"<[^>]*>", "", html.split("<main", 1)[1])).split())


async def insert_job(queue: Queue, data: str = DATA, job_type: str = "pay") -> UUID:
    """Enqueue a job by a plain INSERT."""
    sql = "insert into howdah.jobs (job_type, data) values ($1, $2::jsonb) returning id"
    return (await queue.store.fetch(sql, job_type, data))[0][0]


async def make_failed_job(queue: Queue, max_attempts: int = 1) -> UUID:
    """Make a job whose every attempt fails in a real worker."""

    @queue.job(name="call", max_attempts=max_attempts, backoff=Backoff(timedelta()))
    async def call() -> None:
        raise ValueError("card 7 <was> refused")

    id = (await call.enqueue()).id
    async with queue.worker(worker_id="web-1"):
        await eventually(lambda: _is(queue, id, State.FAILED))
    return id


async def _is(queue: Queue, id: UUID, state: State) -> bool:
    return (await queue.get(id)).status is state


async def test_numbers_are_shown_as_they_were_written(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    id = await insert_job(queue)
    text = visible_text((await client.get(f"/jobs/{id}")).text)
    assert f'"big": {BIG}' in text
    assert '"price": 1.10' in text
    whole = await client.get(f"/jobs/{id}/data.json")
    assert whole.headers["content-type"].startswith("text/plain")
    assert f'"big": {BIG}' in whole.text
    assert '"price": 1.10' in whole.text
    await queue.claim(["pay"], 1, worker_id="w")
    await queue.store.fetch(
        "select howdah.emit('w', array[$1::uuid], array[1], array['tipped'], array[$2::jsonb])",
        id,
        '{"tip": 0.50}',
    )
    complete = "update howdah.jobs set status = 'completed', result = $2::jsonb where id = $1"
    await queue.store.fetch(complete, id, f'{{"sum": {BIG}, "rest": 2.50}}')
    text = visible_text((await client.get(f"/jobs/{id}")).text)
    whole = await client.get(f"/jobs/{id}/result.json")
    for digits in (f'"sum": {BIG}', '"rest": 2.50'):
        assert digits in text
        assert digits in whole.text
    assert '"tip": 0.50' in text
    assert (await client.get(f"/jobs/{id}/secrets.json")).status_code == 404
    stored = await raw_job(queue.store, id)
    assert f'"big": {BIG}' in stored.data


async def test_a_redacted_value_is_nowhere_on_the_page(queue: Queue) -> None:
    @queue.job
    async def pay(ctx: JobContext, big: Any, price: Any, card: Any) -> Any:
        await ctx.emit("paid", {"number": "4111"})
        return [{"NUMBER": "4111"}]

    id = await insert_job(queue)
    async with queue.worker():
        await queue.handle(id).result()
    app = dashboard(queue, access=open_access(), redact=["number"])
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        for path in ("", "/data.json", "/result.json"):
            html = (await client.get(f"/jobs/{id}{path}")).text
            assert "4111" not in html.replace(str(id), "")
            assert "•••" in html
        assert "visa" in (await client.get(f"/jobs/{id}")).text


async def test_a_failed_job_shows_each_attempt_with_its_error_and_traceback(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    id = await make_failed_job(queue, max_attempts=2)
    html = (await client.get(f"/jobs/{id}")).text
    text = visible_text(html)
    assert "attempt 1, retried" in text
    assert "attempt 2, failed" in text
    # at the top, and once in each traceback
    assert text.count("ValueError: card 7 <was> refused") == 5
    assert html.count("<summary>Traceback</summary>") == 2
    assert text.count('raise ValueError("card 7 <was> refused")') == 3
    top = unescape(html.split('id="failure"')[1].split("</section>")[0])
    assert "ValueError: card 7 <was> refused" in top
    assert 'File "' in top
    assert 'raise ValueError("card 7 <was> refused")' in top
    assert html.index('id="failure"') < html.index('id="actions"') < html.index('id="history"')
    assert "Why?" not in text
    links = dict(re.findall(r'<a href="([^"]*)">([^<]*)</a>', html))
    by_text = {text_of_link: unescape(link) for link, text_of_link in links.items()}
    similar = await client.get(by_text["Similar failures"])
    assert f'<tr data-key="{id}"' in similar.text
    assert (
        '<tr data-key="'
        not in (await client.get(by_text["Similar failures"].replace("refused", "lost"))).text
    )
    assert by_text["Jobs of this type"] == "/jobs?job_type=call"
    assert 'href="/workers/web-1"' in html


async def test_a_waiting_job_shows_its_reason(client: httpx.AsyncClient, queue: Queue) -> None:
    id = (await queue.enqueue("pay")).id
    text = visible_text((await client.get(f"/jobs/{id}")).text)
    assert (await observe.why(queue.store, id)).sentence in text
    assert "No live worker knows the type pay" in text


async def test_an_unknown_job_gives_a_page_with_an_explanation(
    client: httpx.AsyncClient,
) -> None:
    answer = await client.get(f"/jobs/{uuid4()}")
    assert answer.status_code == 404
    assert "pruned after its retention" in answer.text
    answer = await client.get("/jobs/what")
    assert answer.status_code == 404
    assert "is no job id" in answer.text


async def test_a_job_offers_the_actions_that_its_state_allows(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    waits = await insert_job(queue)
    later = (await queue.enqueue("pay", {}, delay=timedelta(hours=1))).id
    bad = await make_failed_job(queue)
    held = (await queue.enqueue("held")).id
    await queue.claim(["held"], 1, worker_id="w")
    gone = (await queue.enqueue("gone")).id
    await queue.cancel([gone])
    done = (await queue.enqueue("done")).id
    (claimed,) = await queue.claim(["done"], 1, worker_id="w")
    await queue.complete(claimed)
    for id, can in {
        waits: {"cancel", "clone", "reprioritise"},
        later: {"cancel", "clone", "reprioritise", "run-now"},
        held: {"cancel", "clone"},
        bad: {"requeue", "clone", "delete"},
        gone: {"requeue", "clone", "delete"},
        done: {"clone", "delete"},
    }.items():
        html = (await client.get(f"/jobs/{id}")).text
        assert set(re.findall(rf'action="/jobs/{id}/([a-z-]+)"', html)) == can


async def test_each_action_changes_the_job(client: httpx.AsyncClient, queue: Queue) -> None:
    later = (await queue.enqueue("pay", {"n": 1}, delay=timedelta(hours=1))).id
    here = f"/jobs/{later}"

    async def act(action: str, **fields: str) -> httpx.Response:
        return await send(client, f"{here}/{action}", list(fields.items()))

    answer = await act("run-now")
    assert (flash_text(answer), answer.headers["location"]) == ("1 job moved into line.", here)
    assert (
        flash_text(await act("run-now"))
        == "No job was moved into line; 1 job was in a state that does not allow it."
    )
    await act("reprioritise", priority="7")
    assert (await queue.get(later)).priority == 7
    assert "whole number" in flash_text(await act("reprioritise", priority="first"))
    answer = await act("clone")
    clone = await queue.get(UUID(answer.headers["location"].removeprefix("/jobs/")))
    assert clone.id != later
    assert (clone.job_type, clone.data, clone.priority) == ("pay", {"n": 1}, 7)
    await act("cancel")
    assert ((await queue.get(later)).last_error or "").startswith("cancelled by ")
    await act("requeue")
    assert (await queue.get(later)).status is State.PENDING
    assert "does not allow it" in flash_text(await act("delete"))
    await act("cancel")
    answer = await act("delete")
    assert (flash_text(answer), answer.headers["location"]) == ("1 job deleted.", "/jobs")
    assert (await client.get(here)).status_code == 404
    assert (await act("clone")).status_code == 404
    assert (await act("explode")).status_code == 400


NOW = datetime(2026, 3, 1, tzinfo=UTC)


async def _history(queue: Queue, ran: timedelta, **job: Any) -> JobHistory:
    """Return the history of a job that has run for this long."""
    life = await observe.job_history(queue.store, (await queue.enqueue("pay")).id)
    at_work = {"status": State.RUNNING, "attempts": 1, "started_at": NOW - ran}
    return msgspec.structs.replace(
        life, at=NOW, job=msgspec.structs.replace(life.job, **{**at_work, **job})
    )


async def test_the_remaining_time_is_shown_only_when_it_can_be_estimated(queue: Queue) -> None:
    minute = timedelta(minutes=1)
    remaining = timeline.remaining(await _history(queue, minute, progress=25))
    assert remaining == timeline.Remaining("25.0% per minute", 3 * minute)
    fast = timeline.remaining(await _history(queue, minute, progress=90))
    assert fast is not None
    assert fast.rate == "1.5% per second"
    for ran, job in (
        (minute, {"progress": 0}),
        (minute, {"progress": 1}),
        (minute, {"progress": 100}),
        (minute, {"progress": 50, "attempts": 2}),  # the progress may come from the first attempt
        (minute, {"progress": 50, "status": State.COMPLETED}),
        (timedelta(seconds=1), {"progress": 50}),
    ):
        assert timeline.remaining(await _history(queue, ran, **job)) is None


def test_the_width_of_a_span_is_proportional_to_its_duration() -> None:
    def span(kind: Kind, began: int, ended: int | None, outcome: str | None = None) -> Span:
        end = None if ended is None else NOW + timedelta(seconds=ended)
        return Span(kind=kind, began=NOW + timedelta(seconds=began), ended=end, outcome=outcome)

    spans = [
        span(Kind.WAITING, 0, 30),
        span(Kind.RUNNING, 30, 30, "retried"),
        span(Kind.SCHEDULED, 30, 40),
        span(Kind.RUNNING, 40, None),
    ]
    html = str(timeline.bar(spans, NOW + timedelta(seconds=100)))
    widths = [float(width) for width in re.findall(r' width="([\d.]+)"', html)]
    assert widths[1] >= timeline.MIN_WIDTH - 1  # a short span is still visible
    rest = widths[0] - widths[1], widths[2] - widths[1], widths[3] - widths[1]
    assert rest[0] / rest[2] == pytest.approx(30 / 60, rel=0.01)
    assert rest[1] / rest[2] == pytest.approx(10 / 60, rel=0.01)
    assert sum(widths) + len(widths) == pytest.approx(timeline.WIDTH)
    assert 'aria-label="in line 30.0 s; retried 0 ms; not due 10.0 s; running 1m"' in html
    assert "nothing yet" in str(timeline.bar([], NOW))


async def test_progress_and_events_appear_without_a_reload(
    page: Page, web: Served, queue: Queue
) -> None:
    steps: asyncio.Queue[int] = asyncio.Queue()

    @queue.job
    async def paint(ctx: JobContext, room: dict[str, Any]) -> dict[str, int]:
        while (percent := await steps.get()) < 100:
            await ctx.progress(percent, f"coat {percent}")
            await ctx.emit("coat", {"n": percent})
        return {"litres": 7}

    handle = await paint.enqueue(room={"walls": {"blue": True}})
    await page.goto(f"{web.url}/jobs/{handle.id}")
    title = page.get_by_role("heading", level=1)
    await expect(title).to_contain_text("pending")
    await expect(page.locator("#why")).to_contain_text("No live worker knows the type paint")
    await page.evaluate("() => { window.marked = true }")
    await page.locator("#data summary", has_text="walls").click()
    await expect(page.get_by_text('"blue": true')).to_be_visible()
    async with queue.worker(worker_id="web-1"):
        await expect(title).to_contain_text("running")
        for percent in (10, 60):
            steps.put_nowait(percent)
            bar = page.locator("#progress progress")
            await expect(bar).to_have_js_property("value", percent)
            await expect(page.locator("#progress .stage")).to_have_text(f"coat {percent}")
            await expect(page.locator("#events tbody tr").first).to_contain_text(f'"n": {percent}')
        await expect(page.locator("#events tbody tr")).to_have_count(2)
        await axe_finds_nothing(page)
        steps.put_nowait(100)
        await expect(title).to_contain_text("completed")
        await expect(page.locator("#result")).to_contain_text('"litres": 7')
    await expect(page.locator("#why")).to_have_count(0)
    await expect(page.get_by_text('"blue": true')).to_be_visible()  # still unfolded
    assert await page.evaluate("window.marked")
    await axe_finds_nothing(page)


async def test_the_buttons_of_a_job_work(page: Page, web: Served, queue: Queue) -> None:
    id = await make_failed_job(queue)
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.goto(f"{web.url}/jobs/{id}")
    await page.get_by_role("button", name="Copy").click()
    await expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == str(id)
    trace = page.locator("#history").get_by_text("raise ValueError")
    await expect(trace).to_be_hidden()
    await page.get_by_text("Traceback", exact=True).click()
    await expect(trace).to_be_visible()
    await axe_finds_nothing(page)
    await page.get_by_role("button", name="Requeue").click()
    await expect(page.get_by_text("1 job put back in line.")).to_be_visible()
    await page.get_by_label("New priority").fill("7")
    await page.get_by_role("button", name="Set priority").click()
    await expect(page.locator("#head")).to_contain_text("priority 7")
    page.once("dialog", lambda dialog: dialog.dismiss())
    await page.get_by_role("button", name="Cancel").click()
    await page.get_by_role("button", name="Clone").click()
    await expect(page.get_by_text("1 job cloned. This is the clone.")).to_be_visible()
    assert not page.url.endswith(str(id))
    assert (await queue.get(id)).status is State.PENDING  # the dialog was dismissed


async def test_the_page_shows_the_key_the_limit_and_what_the_job_waits_for(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await queue.store.fetchval("select howdah.set_limit('api', 5)")
    await queue.store.fetchval("select howdah.set_type_limit('call', 1, true, 'api')")
    first, second = [await queue.enqueue("call", key="tenant & 7") for _ in range(2)]
    for _ in range(2):
        await queue.store.fetch("select * from howdah.admit()")
    html = (await client.get(f"/jobs/{second.id}")).text
    text = visible_text(html)
    arrival = (await second.job()).arrival
    assert f"key tenant & 7 limit api number {arrival:,} in the order of enqueueing" in text
    assert "Waits for a slot of its key. It waits for the key tenant & 7: 1 of 1 slots" in text
    assert 'href="/jobs?job_type=call&amp;key=tenant+%26+7"' in html
    assert 'href="/jobs?limited_by=api"' in html
    assert "waits for its key or limit" in text
    assert "/run-now" not in html  # its time has come
    assert "Waits for a worker." in visible_text((await client.get(f"/jobs/{first.id}")).text)
    hostile = [await queue.enqueue("call", key="<b>\u202egnp.exe") for _ in range(2)]
    html = (await client.get(f"/jobs/{hostile[1].id}")).text
    assert "It waits for the key &lt;b&gt;\\u202egnp.exe: " in html
    assert "<bdi>&lt;b&gt;\\u202egnp.exe</bdi>" in html
    assert "\u202e" not in html
    plain = await queue.enqueue("mail", delay=timedelta(hours=1))
    html = (await client.get(f"/jobs/{plain.id}")).text
    assert "Waits for its time. It is not due before" in visible_text(html)
    assert "/run-now" in html
    assert 'id="limited"' not in html
