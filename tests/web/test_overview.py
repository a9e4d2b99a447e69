"""Overview: the whole queue at a glance, problems first, at the cost of one look."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Page, expect
from starlette.requests import Request

from howdah import Priority, Queue, observe
from howdah.observe import Level, Overview, Problem, Times, TypeNow
from howdah.observe.count import Count
from howdah.states import State
from howdah.web.desk import Desk, Settings
from howdah.web.pages.overview import headline, look, worst_by_type
from tests.support.waiting import eventually
from tests.web.asked import Asked
from tests.web.rows import figures, row


async def test_an_empty_queue_says_what_to_do_first(client: httpx.AsyncClient) -> None:
    shown = (await client.get("/")).text
    assert "@queue.job" in shown
    assert "howdah enqueue hello" in shown
    assert "howdah worker app:queue" in shown
    assert "Nothing needs attention" not in shown


def snippet(html: str, id: str) -> str:
    found = re.search(rf'<pre tabindex="0" id="{id}"><code>(.*?)</code></pre>', html, re.DOTALL)
    assert found is not None
    return unescape(found[1]) + "\n"


async def test_the_snippet_of_an_empty_queue_runs_as_it_stands(
    client: httpx.AsyncClient, queue: Queue, dsn: str, tmp_path: Path
) -> None:
    shown = (await client.get("/")).text
    (tmp_path / "app.py").write_text(snippet(shown, "first-app"))
    enqueue, work = snippet(shown, "first-commands").splitlines()
    around = {**os.environ, "HOWDAH_DSN": dsn}

    def started(command: str) -> subprocess.Popen[bytes]:
        program, *args = shlex.split(command)
        assert program == "howdah"
        return subprocess.Popen(
            [sys.executable, "-m", "howdah", *args],
            cwd=tmp_path,
            env=around,
            stdout=subprocess.PIPE,
        )

    with started(enqueue) as enqueueing:
        assert await asyncio.to_thread(enqueueing.wait, 60) == 0
    with started(work) as working:
        try:
            await eventually(lambda: _all_completed(queue), "the first job completes")
        finally:
            working.terminate()
        said, _ = await asyncio.to_thread(working.communicate, timeout=60)
    assert b"hello you" in said


async def _all_completed(queue: Queue) -> bool:
    return [job.status for job in await queue.jobs()] == [State.COMPLETED]


async def test_a_small_chart_has_a_scale(client: httpx.AsyncClient, queue: Queue) -> None:
    @queue.job
    async def letters() -> None: ...

    handles = [await letters.enqueue() for _ in range(3)]
    async with queue.worker():
        for handle in handles:
            await handle.result(timeout=30)
    shown = (await client.get("/")).text
    assert re.search(r'<span class="scale" aria-hidden="true">max [1-3]/minute</span>', shown)
    assert re.search(r"failed attempts; [1-3] in a minute at most", shown)


async def test_problems_stand_first_and_link_to_where_they_are_mended(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await queue.enqueue("letters")
    await queue.enqueue("cards")  # would come first by its name
    await observe.pause(queue.store, "cards", "no stamps", "anna")
    async with queue.store.acquire() as connection:
        await connection.execute(
            "update howdah.jobs_live set ready_at = ready_at - interval '1 hour'"
        )
    shown = (await client.get("/")).text
    nobody = shown.index("No live worker knows the type letters")
    paused = shown.index("cards is paused (no stamps)")
    assert nobody < paused < shown.index("<table")
    assert '<a href="/types/cards">To the type</a>' in shown[paused:]
    assert "<code>howdah resume cards</code>" in shown
    assert '<a href="/health">To the health checks</a>' in shown  # nobody works at all: the doctor


async def test_what_the_workers_did_is_told_by_type(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    @queue.job(max_attempts=1)
    async def flaky(n: int) -> None:
        if n < 6:
            raise ValueError("550 no such mailbox")

    await flaky.enqueue_many(flaky.draft(n=n) for n in range(10))
    async with queue.worker(concurrency=7):
        await eventually(lambda: _finished(queue, "flaky", 10))
        await eventually(lambda: _measured(queue, "flaky"))  # workers report every few seconds
        shown = (await client.get("/")).text
    told = row(shown, "flaky")
    assert told["Waiting"] == "0"
    assert told["Failed"] == "60%"
    assert told["Rate"] == "10/min"
    assert told["Workers"] == "1"
    assert re.fullmatch(r"[\d.]+ m?s / [\d.]+ m?s", told["Run p50 / p99"])
    assert re.fullmatch(r"[\d.]+ m?s / [\d.]+ m?s", told["Pickup p50 / p99"])
    assert "last hour: 4 completed, 6 failed attempts" in shown
    assert 'class="bad"' in shown  # failures have a colour of their own in the trend
    assert "60% of the attempts of flaky failed" in shown
    assert '<a href="/failures?type=flaky">Its failures</a>' in shown
    told = figures(shown)
    assert told["attempts failed"] == "60%"
    assert told["worker alive"] == "1"
    assert told["slots busy"] == "0 of 7"


async def _finished(queue: Queue, job_type: str, jobs: int) -> bool:
    seen = await observe.overview(queue.store, trend=False)
    return any(
        one.job_type == job_type and sum(one.finished.values()) == jobs for one in seen.types
    )


async def _measured(queue: Queue, job_type: str) -> bool:
    seen = await observe.overview(queue.store, trend=False)
    return any(one.job_type == job_type and one.run.jobs for one in seen.types)


async def test_waiting_scheduled_and_paused_jobs_are_told_apart(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await queue.enqueue("letters", delay=timedelta(hours=1))
    await queue.enqueue("letters", priority=Priority.EXPLICIT)
    await queue.enqueue("letters")
    await observe.pause(queue.store, "letters")
    told = row((await client.get("/")).text, "letters")
    assert told["Type"] == "letters paused no worker"
    assert (told["Waiting"], told["Scheduled"]) == ("2", "1")


async def test_the_overview_and_its_problems_cost_one_look(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    await queue.enqueue("letters")
    asked = Asked(monkeypatch)
    found = await look(Desk(queue, Settings()), Request({"type": "http", "query_string": b""}))
    assert found["problems"]
    assert asked.times("howdah.measured_by_minute") == 1
    assert asked.times("howdah.scheduled_counts(") == 1
    assert asked.times("howdah.workers_now(") == 1


async def test_parts_that_took_too_long_are_named(client: httpx.AsyncClient, queue: Queue) -> None:
    await queue.enqueue("letters")
    async with queue.store.acquire() as connection:
        await connection.execute(
            "create or replace function howdah.scheduled_counts(p_cap int default 10000) "
            "returns table (job_type text, jobs bigint, retrying bigint, "
            "first_due timestamptz, unread bigint) "
            "language sql as $$ select 'x', 1, 1, now(), 0 from pg_sleep(60) $$"
        )
    shown = (await client.get("/")).text
    assert "These took too long to count and are missing: scheduled." in shown
    assert row(shown, "letters")["Waiting"] == "1"  # what is known is shown all the same
    listed = (await client.get("/types")).text
    assert "Took too long to look up, and missing here: scheduled." in listed


def test_the_failed_share_weighs_types_by_their_attempts() -> None:
    seen = _overview(
        TypeNow(job_type="many", failure_rate=0.0, run=Times(jobs=90), per_second=1.5),
        TypeNow(job_type="few", failure_rate=1.0, run=Times(jobs=10), waiting=Count(3, True)),
        TypeNow(job_type="none"),
    )
    told = headline(seen)
    assert told.failure_rate == 0.1
    assert told.per_second == 1.5
    assert str(told.waiting) == "3+"
    assert headline(_overview()).failure_rate is None


def test_the_worst_problem_of_a_type_counts() -> None:
    def problem(level: Level, job_type: str | None) -> Problem:
        return Problem(kind="x", level=level, sentence="", advice="", job_type=job_type)

    warning, critical = Level.WARNING, Level.CRITICAL
    found = [
        problem(warning, "a"),
        problem(critical, "a"),
        problem(warning, "b"),
        problem(critical, None),
    ]
    assert worst_by_type(found) == {"a": critical, "b": warning}


def _overview(*types: TypeNow) -> Overview:
    return Overview(at=datetime.now(UTC), types=list(types), workers=0, slots=0, busy=0, late=[])


async def test_types_in_need_come_first_then_the_busy_ones(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    for name in ("calm", "busy", "a bit less busy", "busier", "critical"):
        await queue.enqueue(name, delay=timedelta(hours=1))
    async with queue.store.acquire() as connection:
        for name, completed, failed in (
            ("busy", 75, 0),
            ("a bit less busy", 70, 0),
            ("busier", 7000, 0),
            ("critical", 1, 60),
        ):
            run = "{" + ",".join(["0", str(completed + failed), *["0"] * 54]) + "}"
            await connection.execute(
                "insert into howdah.measures (job_type, at, worker_id, completed, failed, run) "
                "values ($1, howdah.clock(), 'w', $2, $3, $4::text::bigint[])",
                name,
                completed,
                failed,
                run,
            )
    shown = (await client.get("/")).text
    named = re.findall(r'<tr data-key="([\w ]+)">', shown)
    # those that are about as busy go by name, so that they do not change places all the time
    assert named == ["critical", "busier", "a bit less busy", "busy", "calm"]


async def test_numbers_that_change_move_nothing(page: Page, queue: Queue) -> None:
    await queue.enqueue("letters")
    await page.set_viewport_size({"width": 1440, "height": 900})
    waiting = page.locator("tr[data-key=letters] td").first
    await expect(waiting).to_have_text("1")
    before = await _places(page)
    for _ in range(12):
        await queue.enqueue_many(queue.draft("letters") for _ in range(1000))
    await expect(waiting).to_have_text("10,000+", timeout=20_000)
    assert await _places(page) == before


async def _places(page: Page) -> list[float]:
    """Say where every column and every figure stands."""
    return await page.evaluate(
        "[...document.querySelectorAll('thead th, #headline div')]"
        ".flatMap((e) => { const r = e.getBoundingClientRect(); return [r.x, r.width]; })"
    )


async def test_the_open_overview_follows_the_work(page: Page, queue: Queue) -> None:
    go = asyncio.Event()

    @queue.job
    async def letters() -> None:
        await go.wait()

    running = page.locator("#headline div", has_text="running").locator("dd")
    async with queue.worker(concurrency=3):
        await letters.enqueue()
        await expect(running).to_have_text("1", timeout=15_000)
        await expect(page.get_by_role("link", name="letters")).to_be_visible()
        go.set()
        await expect(running).to_have_text("0", timeout=15_000)
    assert State.COMPLETED in (await observe.overview(queue.store)).types[0].finished
