"""Schedules: the page, its actions, and the same for programs."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from datetime import timedelta

import httpx
import pytest
from playwright.async_api import Browser

from howdah import Queue
from howdah.web import dashboard
from tests.web.axe import axe_finds_nothing
from tests.web.forms import flash_text, send
from tests.web.html_tables import row
from tests.web.serving import open_access, served

ODD = "a/b?c=d&e#f <b>g</b>/é"
API = "/api/v1"


async def seeded(queue: Queue) -> None:
    """Make a schedule of each kind."""
    draft = queue.draft("mail", {"secret": "of-nobodys-business"})
    for name in ("nightly", "orphan", "paused", "stopped"):
        await queue.schedules.set(name, draft, cron="0 3 * * *", tz="Europe/Berlin")
    await queue.schedules.set("poll", draft, every=timedelta(minutes=5), overlap="skip")
    await queue.schedules.pause("paused")
    for change in (
        "next_firing = '2100-01-01' where name in ('nightly', 'poll', 'orphan')",
        "orphaned_at = now() where name = 'orphan'",
        "next_firing = 'infinity', problem = 'it is <b>wrong</b>' where name = 'stopped'",
        "last_skipped = now() where name = 'poll'",
    ):
        await queue.store.fetch(f"update howdah.schedules set {change}")
    await queue.schedules.run_now("nightly")


@pytest.fixture
async def read_only(queue: Queue) -> AsyncGenerator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(dashboard(queue, access=open_access(), read_only=True))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


async def test_the_page_lists_schedules(client: httpx.AsyncClient, queue: Queue) -> None:
    assert "There is no schedule." in (await client.get("/schedules")).text
    await seeded(queue)
    html = (await client.get("/schedules")).text
    nightly = row(html, "nightly")
    assert (nightly["Type"], nightly["Fires"], nightly["Outcome"]) == (
        "mail",
        "0 3 * * * Europe/Berlin",
        "pending",
    )
    assert "ago" in nightly["Last"]
    poll = row(html, "poll")
    assert poll["Fires"] == "every 5m missed: last, overlap: skip"
    assert poll["Outcome"].startswith("skipped")
    assert row(html, "paused")["Schedule"] == "paused paused"
    assert row(html, "orphan")["Schedule"] == "orphan orphaned"
    assert "it is &lt;b&gt;wrong&lt;/b&gt;" in html
    assert "of-nobodys-business" not in html


async def test_a_schedule_is_paused_resumed_and_run_by_forms(
    client: httpx.AsyncClient, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "howdah.web")
    await queue.schedules.set(ODD, queue.draft("mail"), every=60)
    name = [("schedule", ODD)]
    answer = await send(client, "/schedules/pause", name)
    assert flash_text(answer).strip('"') == f"The schedule {ODD} is paused."
    assert answer.headers["location"] == "/schedules"
    assert (await queue.schedules.get(ODD)).state == "paused"
    answer = await send(client, "/schedules/resume", name)
    assert flash_text(answer).strip('"') == f"The schedule {ODD} fires again."
    answer = await send(client, "/schedules/run-now", name)
    schedule = await queue.schedules.get(ODD)
    assert answer.headers["location"] == f"/jobs/{schedule.last_job_id}"
    assert "scheduled for" in (await client.get(answer.headers["location"])).text
    lines = [message for message in caplog.messages if message.startswith("web.action")]
    assert [re.findall(r"did=(\w+)", line) for line in lines] == [
        ["pause_schedule"],
        ["resume_schedule"],
        ["run_schedule_now"],
    ]


@pytest.mark.parametrize("action", ["pause", "resume", "run-now"])
async def test_an_unknown_schedule_is_not_found(
    client: httpx.AsyncClient, queue: Queue, action: str
) -> None:
    await queue.schedules.set("nightly", queue.draft("mail"), every=60)
    refused = await send(client, f"/schedules/{action}", [("schedule", "nightyl")])
    assert refused.status_code == 404
    assert "did you mean" in refused.text
    assert (await send(client, f"/schedules/{action}")).status_code == 400


@pytest.mark.parametrize("action", ["pause", "resume", "run-now"])
async def test_a_read_only_dashboard_changes_nothing(
    read_only: httpx.AsyncClient, queue: Queue, action: str
) -> None:
    await queue.schedules.set("nightly", queue.draft("mail"), every=60)
    assert (
        await send(read_only, f"/schedules/{action}", [("schedule", "nightly")])
    ).status_code == 403
    assert (await read_only.post(f"{API}/schedules/nightly/{action}")).status_code == 403
    html = (await read_only.get("/schedules")).text
    assert "nightly" in html
    assert "Run now" not in html
    assert (await queue.jobs()) == []


async def test_programs_read_and_steer_schedules(client: httpx.AsyncClient, queue: Queue) -> None:
    await seeded(queue)
    found = (await client.get(f"{API}/schedules")).json()
    assert [(each["name"], each["state"]) for each in found["schedules"]] == [
        ("nightly", "active"),
        ("orphan", "orphaned"),
        ("paused", "paused"),
        ("poll", "active"),
        ("stopped", "stopped"),
    ]
    assert "of-nobodys-business" not in str(found)
    one = (await client.get(f"{API}/schedules/poll")).json()
    assert (one["every"], one["cron"]) == (300.0, None)
    upcoming = (await client.get(f"{API}/upcoming-firings", params={"count": 2})).json()
    assert [each["name"] for each in upcoming["firings"]] == ["nightly", "poll"]
    html = (await client.get("/schedules")).text
    token = html.split('name="howdah-csrf-token" content="')[1].split('"')[0]
    headers = {"x-howdah-csrf-token": token}
    for action, answer in (("pause", True), ("pause", False), ("resume", True)):
        changed = await client.post(f"{API}/schedules/poll/{action}", headers=headers)
        assert changed.json() == {"changed": answer}
    id = (await client.post(f"{API}/schedules/poll/run-now", headers=headers)).json()["id"]
    assert str((await queue.schedules.get("poll")).last_job_id) == id
    for path in ("/schedules/pol", "/schedules/a%0Ab"):
        assert (await client.get(f"{API}{path}")).status_code == 404
    assert (await client.post(f"{API}/schedules/pol/pause", headers=headers)).status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_page_is_accessible_and_as_wide_as_the_window(
    browser: Browser, queue: Queue, width: int, scheme: str
) -> None:
    await seeded(queue)
    async with served(queue, access=open_access()) as running:
        context = await browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        page = await context.new_page()
        await page.goto(f"{running.url}/schedules")
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        await axe_finds_nothing(page)
        await context.close()
