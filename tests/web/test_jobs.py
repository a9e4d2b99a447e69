"""The list of jobs: filters, pages, and actions on selected or on all matching jobs."""

from __future__ import annotations

import asyncio
import logging
import re
from datetime import timedelta
from html import unescape
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from playwright.async_api import Page, expect

from howdah import JobContext, Queue
from howdah.states import State
from howdah.web import dashboard
from howdah.web.bulk import job as bulk_job
from howdah.web.pages import jobs as page_of_jobs
from tests.support.database import Database
from tests.support.waiting import eventually
from tests.web.axe import axe_finds_nothing
from tests.web.forms import flash_text, send
from tests.web.html_tables import row
from tests.web.recorded_queries import RecordedQueries
from tests.web.serving import Served, open_access

ID = re.compile(r'<tr data-key="([0-9a-f-]{36})"')


def ids(answer: httpx.Response) -> list[UUID]:
    """Return the ids of a list in its order."""
    assert answer.status_code == 200, answer.text
    return [UUID(id) for id in ID.findall(answer.text)]


def links(answer: httpx.Response) -> dict[str, str]:
    """Return the links of a page by their text."""
    pairs = re.findall(r'<a [^>]*href="([^"]*)"[^>]*>([^<]*)</a>', answer.text)
    return {text.strip(): unescape(href) for href, text in pairs}


async def make_failed_job(queue: Queue, error: str, job_type: str = "mail") -> UUID:
    handle = await queue.enqueue(job_type, {"n": 1})
    (claimed,) = await queue.claim([job_type], 1, worker_id="old-hand")
    await queue.fail(claimed, error, retry=False)
    return handle.id


async def state(queue: Queue, id: UUID) -> State:
    return (await queue.get(id)).status


async def test_a_row_shows_the_state_and_progress_of_a_job(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    at_work = asyncio.Event()

    @queue.job(max_attempts=7)
    async def paint(ctx: JobContext, room: str) -> None:
        await ctx.progress(40, "second coat")
        await at_work.wait()

    bad = await make_failed_job(queue, "no route\nto host")
    due = await queue.enqueue("later", {}, delay=timedelta(hours=3), priority=77)
    handle = await paint.enqueue(room="hall")
    async with queue.worker(worker_id="w"):
        await eventually(lambda: _runs_with_progress(queue, handle.id))
        listed = (await client.get("/jobs")).text
        at_work.set()
    html = {
        kind: f"<table>{_head(listed)}{_row(listed, id)}</table>"
        for kind, id in {"running": handle.id, "pending": due.id, "failed": bad}.items()
    }
    running = row(html["running"], "")
    assert running["State"] == "running"
    assert running["Job"] == f"…{str(handle.id)[-8:]}"
    assert f'title="{handle.id}"' in html["running"]
    assert running["Type"] == "paint"
    assert running["Priority"].endswith("100 (discovered)")
    assert running["Payload"] == "room: hall"
    assert running["Attempts"].endswith("1/7")
    assert running["Time"].startswith("runs ")
    assert running["Progress"] == "40% 40% second coat"  # the first is for screen readers
    pending = row(html["pending"], "")
    assert pending["Priority"].endswith("77")
    assert re.fullmatch(r"due in (3h|2h 59m)", pending["Time"])
    failed_row = row(html["failed"], "")
    assert failed_row["Error"] == "no route to host"
    assert failed_row["Created"].endswith("ago")


async def _runs_with_progress(queue: Queue, id: UUID) -> bool:
    """Whether both were written: `start` and progress are two statements of a flush."""
    job = await queue.get(id)
    return job.progress == 40 and job.status is State.RUNNING


def _head(html: str) -> str:
    return html.split("<thead>")[1].split("</thead>")[0]


def _row(html: str, id: UUID) -> str:
    return "<tr " + html.split(f'<tr data-key="{id}"')[1].split("</tr>")[0] + "</tr>"


async def test_the_list_applies_the_filter_of_the_url(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    bad = await make_failed_job(queue, "Host 7 is gone")
    second = await queue.enqueue("mail", {"to": "ann", "n": 2}, priority=5)
    third = await queue.enqueue("call", {"to": "bob"})
    for query, expected in {
        "": [third.id, second.id, bad],
        "status=failed": [bad],
        "status=failed&status=pending&job_type=mail": [second.id, bad],
        "job_type=call&job_type=mail": [third.id, second.id, bad],
        "priority=5": [second.id],
        "worker_id=old-hand": [bad],
        "attempts_from=1": [bad],
        "attempts_to=0": [third.id, second.id],
        "created_from=1h": [third.id, second.id, bad],
        "created_to=1h": [],
        "error=host+7": [bad],
        "fingerprint=Host+%3Cn%3E+is+gone": [bad],
        "payload=to%3Dann": [second.id],
        "payload=to%3Dann&payload=n%3D2": [second.id],
        "payload=to%3Dann&payload=n%3D3": [],
    }.items():
        assert ids(await client.get(f"/jobs?{query}")) == expected, query


async def test_an_invalid_value_is_reported_at_its_field_and_the_form_is_kept(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await queue.enqueue("mail")
    query = {"priority": "<high>", "error": 'say "no"', "payload": "x", "status": "asleep"}
    answer = await client.get("/jobs", params=query)
    assert ids(answer) == []
    text = unescape(answer.text)
    assert "A priority must be a whole number, and “<high>” is not." in text
    assert "“x” has no =" in text
    assert "“asleep” is no state" in text
    assert 'value="&lt;high&gt;"' in answer.text
    assert 'value="say &#34;no&#34;"' in answer.text
    assert 'value="asleep"' in answer.text
    assert "howdah-live" not in answer.text


async def test_a_search_goes_to_the_job_the_type_or_the_errors(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await queue.enqueue("send_mail")
    await queue.enqueue("mail")
    id = uuid4()
    for find, to in {
        str(id): f"/jobs/{id}",
        f" {str(id).upper()} ": f"/jobs/{id}",
        "mail": "/jobs?job_type=mail&find=mail",
        "SEND": "/jobs?job_type=send_mail&find=SEND",
        "AIL": "/jobs?job_type=mail&job_type=send_mail&find=AIL",
        "no route & more": "/jobs?error=no+route+%26+more",
    }.items():
        answer = await client.get("/jobs", params={"find": find})
        assert (answer.status_code, answer.headers["location"]) == (303, to), find
    answer = await client.get("/jobs?job_type=mail&find=mail")
    assert links(answer)["Search it in errors instead"] == "/jobs?error=mail"
    assert len(ids(answer)) == 1


async def test_a_search_finds_the_short_ids_that_the_list_shows(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    handles = [await queue.enqueue("mail") for _ in range(3)]
    failed_id = await make_failed_job(queue, "x")
    listed = (await client.get("/jobs")).text
    for id in (*(handle.id for handle in handles), failed_id):
        short_id = f"…{str(id)[-8:]}"
        assert short_id in listed
        for find in (short_id, short_id[1:], short_id[1:].upper(), str(id)[10:]):
            answer = await client.get("/jobs", params={"find": find})
            assert answer.headers.get("location") == f"/jobs/{id}", find


async def test_a_part_of_an_id_that_matches_none_or_several_is_reported(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await queue.store.fetch(
        "insert into howdah.jobs (id, job_type) values "
        "('01980f2e-7c1a-7d3e-9b1f-2f4e5a6b7c8d', 'mail'), "
        "('01980f2e-7c1a-7d3e-9b1f-2f4e5a6b7c8e', 'mail')"
    )
    several = await client.get("/jobs", params={"find": "01980f2e"})
    assert several.status_code == 400
    assert "01980f2e-7c1a-7d3e-9b1f-2f4e5a6b7c8e" in several.text
    assert (await client.get("/jobs", params={"find": "…ffffff"})).status_code == 404
    # hex digits without "…" may be part of an error; a few digits are plain text
    for find in ("ffffff", "b7c8d"):
        answer = await client.get("/jobs", params={"find": find})
        assert answer.headers["location"] == f"/jobs?error={find}"
    await queue.enqueue("5a6b7c8d")
    answer = await client.get("/jobs", params={"find": "5a6b7c8d"})
    assert answer.headers["location"] == "/jobs?job_type=5a6b7c8d&find=5a6b7c8d"


async def test_rows_show_their_payload_or_the_label_of_their_type(
    queue: Queue,
) -> None:
    @queue.job(label="order {order_id} of {customer} {token}")
    async def ship(order_id: int, customer: str, token: str = "") -> None: ...

    plain = await queue.enqueue(
        "mail", {"to": "ann", "n": 1.1, "deep": {"token": "s3cret", "a": [1]}}
    )
    labelled = await queue.enqueue(
        "ship", {"order_id": 4711, "customer": "<b>Bo</b>\u202e", "token": "s3cret"}
    )
    half = await queue.enqueue("ship", {"order_id": 4712, "customer": "", "token": ""})
    await queue.store.fetch(
        "update howdah.jobs set data = data - 'customer' - 'token' where id = $1", half.id
    )
    long = await queue.enqueue("ship", {"order_id": 4713, "customer": "c" * 50_000})
    await queue.pause("ship")
    async with queue.worker():  # which registers the label
        pass
    async with _client_of(dashboard(queue, access=open_access(), redact=["token"])) as client:
        html = (await client.get("/jobs")).text
    cells = {
        id: row(f"<table>{_head(html)}{_row(html, id)}</table>", "")["Payload"]
        for id in (plain.id, labelled.id, half.id, long.id)
    }
    assert cells[plain.id] == "n: 1.1, to: ann, deep: {a: [1], token: •••}"
    assert cells[labelled.id] == "order 4711 of <b>Bo</b>\\u202e •••"
    assert cells[half.id] == "order 4712 of … …"
    assert cells[long.id].startswith("order 4713 of ccc")
    assert "s3cret" not in html
    assert "<b>Bo" not in html
    assert len(cells[long.id]) <= 100


async def test_the_counts_of_states_come_from_stored_counters(
    client: httpx.AsyncClient, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        await make_failed_job(queue, "x")
    await make_failed_job(queue, "x", "call")
    await queue.enqueue("mail")
    await queue.enqueue("mail", delay=timedelta(hours=1))
    queries = RecordedQueries(monkeypatch)
    assert _counts(await client.get("/jobs")) == {"pending": "2", "failed": "4"}
    assert queries.times("howdah.jobs ") == 1  # the list itself, with its limit of rows
    assert _counts(await client.get("/jobs?job_type=mail")) == {"pending": "2", "failed": "3"}
    answer = await client.get("/jobs?job_type=mail&error=x")
    assert _counts(answer) == {}  # there is no stored count for a filter
    assert links(answer)["failed"] == "/jobs?job_type=mail&error=x&status=failed"


def _counts(answer: httpx.Response) -> dict[str, str]:
    pairs = re.findall(r'>(\w+) <span class="count">([^<]*)</span>', answer.text)
    return {state: count for state, count in pairs if count != "0"}


async def test_pages_go_back_and_forth_without_gap_or_repetition_and_only_the_first_is_live(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await queue.enqueue_many([queue.draft("mail", {"n": n}) for n in range(110)])
    first = await client.get("/jobs?status=pending")
    second = await client.get(links(first)["Older"])
    third = await client.get(links(second)["Older"])
    listed = [*ids(first), *ids(second), *ids(third)]
    assert len(listed) == len(set(listed)) == 110
    assert listed == sorted(listed, reverse=True)
    assert "Older" not in links(third)
    assert "Newer" not in links(first)
    assert ids(await client.get(links(third)["Newer"])) == ids(second)
    assert ids(await client.get(links(second)["Newer"])) == ids(first)
    assert links(third)["Newest"] == "/jobs?status=pending"
    assert [("howdah-live" in page.text) for page in (first, second, third)] == [True, False, False]
    assert (await client.get("/jobs?before=nonsense")).status_code == 400


async def test_a_search_that_stopped_at_its_limit_says_so_and_can_continue(
    client: httpx.AsyncClient, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_of_jobs, "DEPTH", 20)
    rare = await queue.enqueue("rare")
    await queue.enqueue_many([queue.draft("mail", {"n": n}) for n in range(30)])
    first = await client.get("/jobs?job_type=rare")
    assert ids(first) == []
    assert "No match in the 20 jobs that were scanned" in first.text
    second = await client.get(links(first)["Search further back"])
    assert ids(second) == [rare.id]
    assert "Search further back" not in links(second)


async def test_an_empty_queue_and_an_empty_result_have_different_messages(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    assert "No job has been enqueued yet." in (await client.get("/jobs")).text
    await queue.enqueue("mail")
    assert "No job matches." in (await client.get("/jobs?job_type=call")).text


async def test_if_the_query_is_too_slow_the_filter_form_is_still_shown(
    queue: Queue, dsn: str
) -> None:
    app = dashboard(queue, access=open_access(), within=timedelta(seconds=1))
    blocker = Database(dsn)
    with blocker.transaction():
        blocker.execute("lock table howdah.jobs in access exclusive mode")
        async with _client_of(app) as client:
            answer = await client.get("/jobs?error=boom")
    blocker.close()
    assert answer.status_code == 200
    assert "did not answer within 1 s. Use a narrower filter" in answer.text
    assert 'value="boom"' in answer.text


def _client_of(app: object) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app)  # pyright: ignore[reportArgumentType]
    return httpx.AsyncClient(transport=transport, base_url="http://localhost")


async def test_an_action_changes_the_selected_jobs_only(
    client: httpx.AsyncClient, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "howdah.web")
    selected, other = await queue.enqueue("mail"), await queue.enqueue("mail")
    later = await queue.enqueue("mail", delay=timedelta(hours=1))
    bad = await make_failed_job(queue, "x", "call")

    async def act(action: str, *ids: UUID, **more: str) -> str:
        fields = [("action", action), *(("id", str(id)) for id in ids), *more.items()]
        return flash_text(await send(client, "/jobs/act", fields))

    assert await act("reprioritise", selected.id, priority="explicit") == (
        "1 job given another priority."
    )
    assert (await queue.get(selected.id)).priority == 150
    assert (await queue.get(other.id)).priority == 100
    assert await act("run-now", later.id, other.id) == (
        "1 job moved into line; 1 job was in a state that does not allow it."
    )
    assert await act("cancel", selected.id, selected.id) == "1 job cancelled."
    assert await state(queue, selected.id) is State.CANCELLED
    assert await state(queue, other.id) is State.PENDING
    assert await act("requeue", bad, selected.id) == "2 jobs put back in line."
    assert await state(queue, bad) is State.PENDING
    await act("cancel", bad)
    assert (
        await act("delete", bad, other.id)
        == "1 job deleted; 1 job was in a state that does not allow it."
    )
    lines = [line for line in caplog.messages if "did=delete" in line]
    assert len(lines) == 1
    assert 'on="2 jobs" moved="1"' in lines[0]


async def test_an_incomplete_form_is_refused_with_a_reason(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    id = (await queue.enqueue("mail")).id
    back = ("back", "status=pending&job_type=mail")
    answer = await send(client, "/jobs/act", [("action", "cancel"), back])
    assert flash_text(answer) == "No job was selected, so nothing was changed."
    assert answer.headers["location"] == "/jobs?status=pending&job_type=mail"
    for priority in ("", "high", "99999999999"):
        fields = [("action", "reprioritise"), ("id", str(id)), ("priority", priority)]
        assert "Nothing was changed." in flash_text(await send(client, "/jobs/act", fields))
    for action, selected in (("explode", str(id)), ("clone", str(id)), ("cancel", "1 or 2")):
        answer = await send(client, "/jobs/act", [("action", action), ("id", selected)])
        assert answer.status_code == 400
    job = await queue.get(id)
    assert (job.status, job.priority) == (State.PENDING, 100)


async def test_read_only_mode_shows_no_buttons(queue: Queue) -> None:
    id = (await queue.enqueue("mail")).id
    async with _client_of(dashboard(queue, access=open_access(), read_only=True)) as client:
        for path in ("/jobs", f"/jobs/{id}", "/jobs/matching?action=cancel"):
            answer = await client.get(path)
            assert answer.status_code == 200
            assert 'method="post"' not in answer.text
            assert 'type="checkbox" name="id"' not in answer.text
        for path in ("/jobs/act", f"/jobs/{id}/cancel", "/jobs/matching"):
            answer = await send(client, path, [("action", "cancel"), ("id", str(id))])
            assert answer.status_code == 403
    assert await state(queue, id) is State.PENDING


async def test_a_bulk_action_shows_its_filter_and_count_before_it_starts(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await queue.enqueue_many([queue.draft("mail", {"n": n}) for n in range(12)])
    await make_failed_job(queue, "x", "call")
    query = "job_type=mail&created_from=2h"
    answer = await client.get(f"/jobs/matching?action=cancel&{query}")
    assert "pending, claimed or running jobs of the type mail, created since" in answer.text
    assert "<strong>12</strong> jobs match now" in answer.text
    assert "asked to stop" in answer.text
    assert "Cancel 12 jobs" in answer.text
    assert 'name="created_from" value="2h"' not in answer.text  # it became an exact time
    none = await client.get("/jobs/matching?action=requeue&job_type=mail&status=pending")
    assert "No job matches now" in none.text
    assert '<form method="post"' not in none.text
    assert (await client.get("/jobs/matching?action=requeue&priority=x")).status_code == 400
    assert (await client.get("/jobs/matching?action=clone")).status_code == 400
    for fields in (
        [("action", "reprioritise"), ("job_type", "mail")],
        [("action", "requeue"), ("status", "pending")],
        [("action", "cancel"), ("priority", "x"), ("attempts_from", "many")],
    ):
        assert (await send(client, "/jobs/matching", fields)).status_code == 400
    assert (await queue.counts())["mail"] == {State.PENDING: 12}
    assert "howdah.bulk" not in await queue.counts()


class Halfway:
    """Stops a bulk job after some of its jobs, until the test continues it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
        self.go_on = asyncio.Event()
        self._left = after
        self._move = bulk_job.move
        monkeypatch.setattr(bulk_job, "move", self.move)

    async def move(self, *args: Any) -> dict[UUID, UUID]:
        moved = await self._move(*args)
        self._left -= len(moved)
        if self._left < 0:
            await self.go_on.wait()
        return moved


@pytest.fixture
async def many(queue: Queue) -> int:
    """Make many waiting jobs of the type mail, and one of another type; return how many."""
    await queue.enqueue("call")
    return await queue.enqueue_many(queue.draft("mail", {"n": n}) for n in range(100_000))


async def test_a_bulk_action_over_a_hundred_thousand_jobs_runs_with_progress_on_screen(
    page: Page, web: Served, queue: Queue, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    halfway = Halfway(monkeypatch, after=many // 2)
    await page.goto(f"{web.url}/jobs?job_type=mail")
    await page.get_by_role("button", name="Cancel…").click()
    await expect(page.get_by_text("jobs match now")).to_have_text("100,000 jobs match now.")
    await axe_finds_nothing(page)
    await page.get_by_role("button", name="Cancel 100,000 jobs").click()
    title = page.get_by_role("heading", level=1)
    await expect(title).to_contain_text("howdah.bulk")
    await page.evaluate("() => { window.marked = true }")
    await expect(page.locator("#progress .stage")).to_have_text("50,000 of about 100,000")
    await expect(page.locator("#progress progress")).to_have_js_property("value", 50)
    await expect(title).to_contain_text("running")
    halfway.go_on.set()
    await expect(title).to_contain_text("completed")
    await expect(page.locator("#result")).to_contain_text('"moved": 100000')
    assert await page.evaluate("window.marked")  # the page was not reloaded
    assert await queue.counts() == {
        "mail": {State.CANCELLED: many},
        "call": {State.PENDING: 1},
        "howdah.bulk": {State.COMPLETED: 1},
    }


async def test_a_list_does_not_change_while_jobs_are_selected(
    page: Page, web: Served, queue: Queue
) -> None:
    first = await queue.enqueue("mail")
    second = await queue.enqueue("mail")
    await page.goto(f"{web.url}/jobs")
    await axe_finds_nothing(page)
    cancel = page.get_by_role("button", name="Cancel", exact=True)
    await expect(page.locator("#bar")).to_be_hidden()  # until a job is selected
    await expect(page.get_by_role("button", name="Cancel…")).to_have_class("danger")
    third = await queue.enqueue("mail")
    rows = page.locator("#rows tr")
    await expect(rows).to_have_count(3)  # live
    await page.get_by_label(f"Select job {first.id}").check()
    await page.get_by_label(f"Select job {second.id}").check()
    await expect(page.locator("#selected")).to_have_text("2 selected, the list is frozen:")
    await expect(cancel).to_be_in_viewport()
    await expect(cancel).to_have_class("danger")
    await axe_finds_nothing(page)
    await queue.enqueue("mail")
    await expect(page.locator(".states .count").first).to_have_text("4")  # drawn again
    await expect(rows).to_have_count(3)
    page.once("dialog", lambda dialog: dialog.accept())
    await cancel.click()
    await expect(page.get_by_text("2 jobs cancelled.")).to_be_visible()
    await expect(rows).to_have_count(4)
    assert await state(queue, first.id) is State.CANCELLED
    assert await state(queue, third.id) is State.PENDING
    await page.get_by_label("Select all on this page").check()
    await expect(page.locator("#selected")).to_have_text("4 selected, the list is frozen:")


async def limited_jobs(queue: Queue) -> list[UUID]:
    """Enqueue two jobs of a key, and two of a limit; the second ones wait."""
    await queue.store.fetchval("select howdah.set_limit('api', 1)")
    await queue.store.fetchval("select howdah.set_type_limit('call', null, p_limit => 'api')")
    handles = [await queue.enqueue("mail", key="tenant-7") for _ in range(2)]
    handles += [await queue.enqueue("call") for _ in range(2)]
    await queue.store.fetch("select * from howdah.admit()")
    return [handle.id for handle in handles]


async def test_the_list_is_filtered_by_key_by_limit_and_by_what_jobs_wait_for(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    in_line, waits, called, calls = await limited_jobs(queue)
    later = (await queue.enqueue("mail", delay=timedelta(hours=1))).id
    for query, expected in {
        "key=tenant-7": [waits, in_line],
        "key=tenant-7&job_type=mail&waits_for=key": [waits],
        "limited_by=api": [calls, called],
        "waits_for=limit&waits_for=key": [calls, waits],
        "waits_for=time": [later],
        "waits_for=worker": [called, in_line],
        "key=tenant-8": [],
    }.items():
        assert ids(await client.get(f"/jobs?{query}")) == expected, query
    answer = await client.get("/jobs?waits_for=godot&key=tenant-7")
    assert "Jobs do not wait for “godot”. They wait for: time, retry" in unescape(answer.text)
    assert 'value="godot"' in answer.text


async def test_a_row_shows_its_key_and_what_it_waits_for(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    in_line, waits, called, calls = await limited_jobs(queue)
    html = (await client.get("/jobs")).text
    cells = {
        id: row(f"<table>{_head(html)}{_row(html, id)}</table>", "")["Key and limit"]
        for id in (in_line, waits, called, calls)
    }
    assert cells == {
        in_line: "key tenant-7",
        waits: "key tenant-7 waits for a slot of its key",
        called: "api",
        calls: "api waits for its limit",
    }
    assert 'href="/jobs?job_type=mail&amp;key=tenant-7"' in html
    assert 'href="/jobs?limited_by=api"' in html
    assert "Key and limit" not in (await client.get("/jobs?job_type=plain")).text
    counted = re.search(r'class="pending"[^>]*>pending <span class="count">(\d+)<', html)
    assert counted is not None
    assert counted[1] == "4"  # also those that wait for a slot


async def test_keys_are_hidden_where_keys_of_payloads_are_redacted(queue: Queue) -> None:
    await queue.store.fetchval("select howdah.set_limit('api', 1, p_per_key => true)")
    await queue.store.fetchval("select howdah.set_type_limit('call', 2, p_limit => 'api')")
    handles = [await queue.enqueue("call", key="t-4711") for _ in range(3)]
    for _ in range(2):
        await queue.store.fetch("select * from howdah.admit()")
    async with _client_of(dashboard(queue, access=open_access(), redact=["token"])) as client:
        shown = [
            *("/jobs", "/types/call", "/api/v1/jobs", "/api/v1/types/call/keys"),
            *(f"/jobs/{handle.id}" for handle in handles),
            *(f"/api/v1/jobs/{handle.id}" for handle in handles),
            *(f"/api/v1/jobs/{handle.id}/why" for handle in handles),
        ]
        for path in shown:
            answer = await client.get(path)
            assert answer.status_code == 200, path
            assert "4711" not in answer.text, path
        assert "It waits for the key •••: 2 of 2" in (await client.get(shown[-1])).text
        for path in ("/jobs?key=t-4711", "/api/v1/jobs?key=t-4711"):
            answer = await client.get(path)
            assert str(handles[0].id) not in answer.text
            assert "eys of jobs are redacted here: filter by another field" in answer.text
        assert (await client.get("/api/v1/jobs?limited_by=api:t-4711")).status_code == 400
        assert len(ids(await client.get("/jobs?limited_by=api"))) == 3


async def test_an_action_on_all_that_match_keeps_the_key(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    in_line, waits, *_ = await limited_jobs(queue)
    filter = {"job_type": "mail", "key": "tenant-7", "waits_for": "key"}
    html = (await client.get("/jobs/matching", params={"action": "cancel", **filter})).text
    assert "with the key tenant-7, that wait for a slot of their key" in html
    assert "<strong>1</strong> job matches now" in html
    for name, value in filter.items():
        assert f'<input type="hidden" name="{name}" value="{value}">' in html
    assert await state(queue, in_line) is await state(queue, waits) is State.PENDING
