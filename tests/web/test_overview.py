"""Overview: the state of the queue on one page, problems first, from one set of queries."""

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
from howdah.store import steer
from howdah.web.context import DashboardContext, Settings
from howdah.web.pages.overview import headline, load, worst_by_type
from tests.support.waiting import eventually
from tests.web.html_tables import figures, row
from tests.web.recorded_queries import RecordedQueries


async def test_an_empty_queue_shows_the_first_steps(client: httpx.AsyncClient) -> None:
    html = (await client.get("/")).text
    assert "@queue.job" in html
    assert "howdah enqueue hello" in html
    assert "howdah worker app:queue" in html
    assert "Nothing needs attention" not in html


def snippet(html: str, id: str) -> str:
    match = re.search(rf'<pre tabindex="0" id="{id}"><code>(.*?)</code></pre>', html, re.DOTALL)
    assert match is not None
    return unescape(match[1]) + "\n"


async def test_the_snippet_of_an_empty_queue_runs_unchanged(
    client: httpx.AsyncClient, queue: Queue, dsn: str, tmp_path: Path
) -> None:
    html = (await client.get("/")).text
    (tmp_path / "app.py").write_text(snippet(html, "first-app"))
    enqueue, work = snippet(html, "first-commands").splitlines()
    around = {**os.environ, "HOWDAH_DSN": dsn}

    def start(command: str) -> subprocess.Popen[bytes]:
        program, *args = shlex.split(command)
        assert program == "howdah"
        return subprocess.Popen(
            [sys.executable, "-m", "howdah", *args],
            cwd=tmp_path,
            env=around,
            stdout=subprocess.PIPE,
        )

    with start(enqueue) as enqueueing:
        assert await asyncio.to_thread(enqueueing.wait, 60) == 0
    with start(work) as working:
        try:
            await eventually(lambda: _all_completed(queue), "the first job completes")
        finally:
            working.terminate()
        output, _ = await asyncio.to_thread(working.communicate, timeout=60)
    assert b"hello you" in output


async def _all_completed(queue: Queue) -> bool:
    return [job.status for job in await queue.jobs()] == [State.COMPLETED]


async def test_a_small_chart_has_a_scale(client: httpx.AsyncClient, queue: Queue) -> None:
    @queue.job
    async def letters() -> None: ...

    handles = [await letters.enqueue() for _ in range(3)]
    async with queue.worker():
        for handle in handles:
            await handle.result(timeout=30)
    html = (await client.get("/")).text
    assert re.search(r'<span class="scale" aria-hidden="true">max [1-3]/minute</span>', html)
    assert re.search(r"failed attempts; [1-3] in a minute at most", html)


async def test_problems_come_first_with_a_link_to_their_remedy(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await queue.enqueue("letters")
    await queue.enqueue("cards")  # first by name
    await steer.pause(queue.store, "cards", "no stamps", "anna")
    async with queue.store.acquire() as connection:
        await connection.execute(
            "update howdah.jobs_live set ready_at = ready_at - interval '1 hour'"
        )
    html = (await client.get("/")).text
    no_worker = html.index("No live worker knows the type letters")
    paused = html.index("cards is paused (no stamps)")
    assert no_worker < paused < html.index("<table")
    assert '<a href="/types/cards">Open the type</a>' in html[paused:]
    assert "<code>howdah resume cards</code>" in html
    assert '<a href="/health">Open the health checks</a>' in html  # no worker


async def test_the_results_of_workers_are_shown_by_type(
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
        html = (await client.get("/")).text
    cells = row(html, "flaky")
    assert cells["Waiting"] == "0"
    assert cells["Failed"] == "60%"
    assert cells["Rate"] == "10/min"
    assert cells["Workers"] == "1"
    assert re.fullmatch(r"[\d.]+ m?s / [\d.]+ m?s", cells["Run p50 / p99"])
    assert re.fullmatch(r"[\d.]+ m?s / [\d.]+ m?s", cells["Pickup p50 / p99"])
    assert "last hour: 4 completed, 6 failed attempts" in html
    assert 'class="bad"' in html  # failures have a colour of their own in the trend
    assert "60% of the attempts of flaky failed" in html
    assert '<a href="/failures?type=flaky">Failures</a>' in html
    by_name = figures(html)
    assert by_name["attempts failed"] == "60%"
    assert by_name["worker alive"] == "1"
    assert by_name["slots busy"] == "0 of 7"


async def _finished(queue: Queue, job_type: str, jobs: int) -> bool:
    overview = await observe.overview(queue.store, trend=False)
    return any(
        type.job_type == job_type and sum(type.finished.values()) == jobs for type in overview.types
    )


async def _measured(queue: Queue, job_type: str) -> bool:
    overview = await observe.overview(queue.store, trend=False)
    return any(type.job_type == job_type and type.run.jobs for type in overview.types)


async def test_waiting_scheduled_and_paused_jobs_are_shown_separately(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await queue.enqueue("letters", delay=timedelta(hours=1))
    await queue.enqueue("letters", priority=Priority.EXPLICIT)
    await queue.enqueue("letters")
    await steer.pause(queue.store, "letters")
    cells = row((await client.get("/")).text, "letters")
    assert cells["Type"] == "letters paused no worker"
    assert (cells["Waiting"], cells["Scheduled"]) == ("2", "1")


async def test_the_overview_and_its_problems_share_their_queries(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    await queue.enqueue("letters")
    queries = RecordedQueries(monkeypatch)
    values = await load(
        DashboardContext(queue, Settings()), Request({"type": "http", "query_string": b""})
    )
    assert values["problems"]
    assert queries.times("howdah.measured_by_minute") == 1
    assert queries.times("howdah.scheduled_counts(") == 1
    assert queries.times("howdah.workers_now(") == 1


async def test_parts_that_took_too_long_are_named(client: httpx.AsyncClient, queue: Queue) -> None:
    await queue.enqueue("letters")
    async with queue.store.acquire() as connection:
        await connection.execute(
            "create or replace function howdah.scheduled_counts(p_cap int default 10000) "
            "returns table (job_type text, jobs bigint, retrying bigint, "
            "first_due timestamptz, unread bigint) "
            "language sql as $$ select 'x', 1, 1, now(), 0 from pg_sleep(60) $$"
        )
    html = (await client.get("/")).text
    assert "These took too long to count and are missing: scheduled." in html
    assert row(html, "letters")["Waiting"] == "1"  # the other parts are still shown
    listed = (await client.get("/types")).text
    assert "Missing here, because the query took too long: scheduled." in listed


def test_the_failed_share_weighs_types_by_their_attempts() -> None:
    overview = _overview(
        TypeNow(job_type="many", failure_rate=0.0, run=Times(jobs=90), per_second=1.5),
        TypeNow(job_type="few", failure_rate=1.0, run=Times(jobs=10), waiting=Count(3, True)),
        TypeNow(job_type="none"),
    )
    totals = headline(overview)
    assert totals.failure_rate == 0.1
    assert totals.per_second == 1.5
    assert str(totals.waiting) == "3+"
    assert headline(_overview()).failure_rate is None


def test_the_worst_problem_of_a_type_counts() -> None:
    def problem(level: Level, job_type: str | None) -> Problem:
        return Problem(kind="x", level=level, sentence="", advice="", job_type=job_type)

    warning, critical = Level.WARNING, Level.CRITICAL
    problems = [
        problem(warning, "a"),
        problem(critical, "a"),
        problem(warning, "b"),
        problem(critical, None),
    ]
    assert worst_by_type(problems) == {"a": critical, "b": warning}


def _overview(*types: TypeNow) -> Overview:
    return Overview(at=datetime.now(UTC), types=list(types), workers=0, slots=0, busy=0, late=[])


async def test_types_with_problems_come_first_then_busy_ones(
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
    html = (await client.get("/")).text
    order = re.findall(r'<tr data-key="([\w ]+)">', html)
    # types with a similar load are sorted by name, so that their order is stable
    assert order == ["critical", "busier", "a bit less busy", "busy", "calm"]


async def test_changing_numbers_do_not_move_the_layout(page: Page, queue: Queue) -> None:
    await queue.enqueue("letters")
    await page.set_viewport_size({"width": 1440, "height": 900})
    waiting = page.locator("tr[data-key=letters] td").first
    await expect(waiting).to_have_text("1")
    before = await _positions(page)
    for _ in range(12):
        await queue.enqueue_many(queue.draft("letters") for _ in range(1000))
    await expect(waiting).to_have_text("10,000+", timeout=20_000)
    assert await _positions(page) == before


async def _positions(page: Page) -> list[float]:
    """Return the position of every column and every figure."""
    return await page.evaluate(
        "[...document.querySelectorAll('thead th, #headline div')]"
        ".flatMap((e) => { const r = e.getBoundingClientRect(); return [r.x, r.width]; })"
    )


async def test_an_open_overview_shows_the_progress_of_jobs(page: Page, queue: Queue) -> None:
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
