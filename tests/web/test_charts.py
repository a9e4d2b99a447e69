"""Charts: drawn for any history, described in words and as a table, and updated live."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from urllib.parse import quote
from xml.etree import ElementTree

import httpx
import pytest
from playwright.async_api import Browser, Page, expect
from starlette.requests import Request

from howdah import Queue
from howdah.observe import Count, OverTime, Point, Range, Times
from howdah.web.cache import LIVE
from howdah.web.charts import Chart, charts, compact, linear_scale, log_scale
from howdah.web.context import DashboardContext, Settings
from howdah.web.pages.history import load
from tests.web.axe import axe_finds_nothing
from tests.web.recorded_queries import RecordedQueries
from tests.web.serving import Served, open_access, served

NOW = datetime(2026, 3, 29, 12, 34, 56, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script>\"'&/\\ {{ 7*7 }} é"


def history(range: Range, point: Callable[[int], dict[str, object]]) -> OverTime:
    starts = [NOW - range.step * (range.points - n) for n in _count(range.points)]
    points = [Point(at=at, **point(n)) for n, at in enumerate(starts)]  # pyright: ignore
    return OverTime(range=range, job_type=None, at=NOW, step=range.step, points=points)


_count = range


def measured(jobs: int, seconds: float = 0.02, **more: object) -> dict[str, object]:
    times = Times(jobs, timedelta(seconds=seconds), timedelta(seconds=30 * seconds), timedelta())
    point = {"minutes": 1, "completed": jobs, "failed": 0, "retried": jobs // 10}
    return {**point, "waiting": Count(jobs), "pickup": times, "run": times, **more}


def drawn(history: OverTime) -> dict[str, Chart]:
    """Draw the charts; check that each is well-formed XML with finite numbers."""
    by_id = {chart.id: chart for chart in charts(history)}
    assert list(by_id) == ["throughput", "failures", "waiting", "pickup", "run"]
    for chart in by_id.values():
        root = ElementTree.fromstring(str(chart.svg))
        assert root.get("role") == "img"
        assert root.get("aria-label")
        for element in root.iter():
            for name in ("d", "x", "y", "cx", "cy"):
                value = element.get(name, "")
                assert not re.search("nan|inf|e[+-]", value), (name, value)
                if name != "d" and value:
                    assert -1 <= float(value) <= 401
    return by_id


def ends(chart: Chart) -> list[str]:
    """Return the labels at the ends of the lines."""
    return re.findall(r'<text class="end [^>]*>([^<]*)<', str(chart.svg))


def ticks(chart: Chart) -> list[str]:
    return re.findall(r'<text class="y"[^>]*>([^<]*)<', str(chart.svg))


# ── any history can be drawn ──


@pytest.mark.parametrize("range", list(Range))
def test_an_empty_history_shows_a_message(range: Range) -> None:
    for chart in drawn(history(range, lambda _: {})).values():
        assert "nothing was measured yet" in chart.svg
        assert 'class="gap"' in chart.svg
        assert chart.most == "\u2013"


@pytest.mark.parametrize("range", list(Range))
@pytest.mark.parametrize("jobs", [0, 1, 7, 10**12])
@pytest.mark.parametrize("seconds", [0.0, 1e-9, 0.0004, 1.0, 67_000.0, 1e9])
def test_one_point_all_equal_and_extremes_are_drawn(
    range: Range, jobs: int, seconds: float
) -> None:
    drawn(history(range, lambda _: measured(jobs, seconds)))
    for only in (0, range.points // 2, range.points - 1):
        by_id = drawn(
            history(range, lambda n, only=only: measured(jobs, seconds) if n == only else {})
        )
        assert "h0" in by_id["throughput"].svg, "a single point is drawn as a dot"


def test_any_mix_is_drawn() -> None:
    chance = random.Random(16)
    for _ in range(200):
        which = chance.choice(list(Range))

        def point(_: int) -> dict[str, object]:
            if chance.random() < 0.3:
                return {}
            values = measured(chance.choice([0, 1, 3, 10**9]), 10 ** chance.uniform(-9, 9))
            if chance.random() < 0.3:
                values["waiting"] = chance.choice([None, Count(100_000, True)])
            if chance.random() < 0.3:
                values["run"] = Times()
            return values

        drawn(history(which, point))


def test_missing_measures_are_a_gap_and_not_a_zero() -> None:
    away = range(20, 40)
    by_id = drawn(history(Range.HOUR, lambda n: {} if n in away else measured(60)))
    line = re.findall(r'class="line one" d="([^"]*)"', str(by_id["throughput"].svg))[0]
    assert line.count("M") == 2, "the line is broken"
    assert by_id["throughput"].svg.count('class="gap"') == 1
    assert "no worker was running" in by_id["throughput"].svg
    late = drawn(history(Range.HOUR, lambda n: {} if n > 57 else measured(60)))
    assert 'class="gap"' not in late["throughput"].svg, "minutes that are not added up yet"


def test_an_idle_hour_is_a_line_at_zero() -> None:
    by_id = drawn(history(Range.HOUR, lambda _: {**measured(0), "pickup": Times(), "run": Times()}))
    assert ticks(by_id["throughput"]) == ["0", "1"]
    assert (by_id["throughput"].most, by_id["waiting"].most) == ("none", "none")
    assert "no attempt ended" in by_id["run"].svg


# ── labels ──


def test_rates_are_shown_in_a_fitting_unit() -> None:
    units = {
        10: "completed per minute",
        10_000: "completed per second",
    }
    for jobs, unit in units.items():
        by_id = drawn(history(Range.HOUR, lambda _, jobs=jobs: measured(jobs)))
        assert by_id["throughput"].unit == unit
    slow = drawn(history(Range.WEEK, lambda _: measured(1, minutes=120)))["throughput"]
    assert (slow.unit, ends(slow)) == ("completed per hour", ["0.5"])
    fast = drawn(history(Range.HOUR, lambda _: measured(10_000)))["throughput"]
    assert ends(fast) == ["167"]


def test_the_newest_and_the_largest_value_are_shown() -> None:
    by_id = drawn(history(Range.HOUR, lambda n: measured(50 if n == 30 else 20)))
    assert ends(by_id["throughput"]) == ["20"]
    assert by_id["throughput"].most == "most: 50, 30m ago"
    assert ends(by_id["pickup"]) == ["p50 20 ms", "p99 600 ms"] or ends(by_id["pickup"]) == [
        "p99 600 ms",
        "p50 20 ms",
    ]
    assert 'aria-label="Throughput, completed per minute, last hour: newest 20, most: 50, 30m' in (
        by_id["throughput"].svg
    )
    assert "<title>Sun 12:33 UTC: 20</title>" in by_id["throughput"].svg
    capped = drawn(history(Range.DAY, lambda _: measured(1, waiting=Count(100_000, True))))
    assert capped["waiting"].most.startswith("most: 100k+, ")


def test_labels_do_not_cover_each_other() -> None:
    same = Times(5, timedelta(seconds=1), timedelta(seconds=1.01), timedelta(seconds=1))
    by_id = drawn(history(Range.HOUR, lambda _: measured(5, pickup=same)))
    at = [float(y) for y in re.findall(r'class="end [^>]* y="([\d.]+)"', str(by_id["pickup"].svg))]
    assert abs(at[0] - at[1]) >= 13


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0, "0"), (0.0001, "1e-04"), (0.25, "0.25"), (7, "7"), (9.96, "9.96"), (42.5, "42.5")),
        *((999, "999"), (999.9, "1k"), (4200, "4.2k"), (123_456, "123k"), (1e12, "1T")),
    ],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert compact(value) == text


def test_ticks_are_round_and_hold_every_value() -> None:
    chance = random.Random(3)
    for _ in range(2000):
        most = 10 ** chance.uniform(-6, 15)
        scale = linear_scale(most, whole := chance.random() < 0.5)
        assert 2 <= len(scale.ticks) <= 6
        assert 0 <= scale.share(most) <= 1 + 1e-9
        step = scale.ticks[1] - scale.ticks[0]
        digits = step / 10 ** math.floor(math.log10(step) + 1e-9)
        assert min(abs(digits - n) for n in (1, 2, 2.5, 5, 10)) < 1e-6
        assert not whole or step >= 1
        low = 10 ** chance.uniform(-5, 5)
        scale = log_scale([low, low * 10 ** chance.uniform(0, 3)])
        assert 0 <= scale.share(low) <= 1
        assert 2 <= len(scale.ticks) <= 6


# ── on the pages ──


async def store_history(queue: Queue, *types: str) -> None:
    """Write a week of history, of all types together and of these."""
    await queue.store.fetch(
        """
        insert into howdah.measure_history
            (at, step, job_type, minutes, completed, failed, retried, pickup, run, waiting)
        select date_trunc('minute', howdah.clock()) - n * s.step, s.step, t.name,
               extract(epoch from s.step) / 60, 10 * (n % 7), n % 3, n % 5,
               '{0,0,0,9,1}', '{0,9,0,0,1}', n
        from (values (interval '1 minute', 2, 64), (interval '15 minutes', 5, 99),
                     (interval '2 hours', 13, 83)) as s (step, first, last),
             generate_series(s.first, s.last) as n, unnest($1::text[]) as t (name)
        """,
        ["", *types],
    )


async def test_the_overview_and_a_type_show_five_charts_for_each_range(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await queue.enqueue("letters")
    await store_history(queue, "letters")
    for path in ("/", "/types/letters"):
        for range in Range:
            html = (await client.get(path, params={"range": range})).text
            assert html.count('<svg class="chart"') == 5
            assert html.count('aria-current="true"') == 1
            assert f'range={range}&amp;view=charts" aria-current="true"' in html
            assert f"last {range}:" in html
            assert "nothing was measured yet" not in html
        assert (await client.get(path)).text.count('<svg class="chart"') == 5


async def test_a_table_shows_the_same_numbers(client: httpx.AsyncClient, queue: Queue) -> None:
    await queue.enqueue("letters")
    await store_history(queue, "letters")
    html = (await client.get("/types/letters?range=day&view=table")).text
    assert '<svg class="chart"' not in html
    assert html.count("data-local") >= 96
    assert "Show as charts" in html


@pytest.mark.parametrize(
    "query",
    ["range=month", "range=", "view=pie", "range=%00", "range=<script>", "range=" + "x" * 999],
)
async def test_an_unknown_range_is_refused(
    client: httpx.AsyncClient, queue: Queue, query: str
) -> None:
    await queue.enqueue("letters")
    for path in ("/", "/types/letters"):
        refused = await client.get(f"{path}?{query}")
        assert refused.status_code == 400
        assert "choose one of " in refused.text
        assert "<script>" not in refused.text


async def test_a_hostile_name_is_text(client: httpx.AsyncClient, queue: Queue) -> None:
    await queue.enqueue(HOSTILE)
    await store_history(queue, HOSTILE)
    answer = await client.get(f"/types/{quote(HOSTILE)}")
    assert answer.status_code == 200
    assert "<script>alert" not in answer.text
    assert answer.text.count('<svg class="chart"') == 5
    link = re.findall(r'href="([^"]*range=week[^"]*)"', answer.text)[0].replace("&amp;", "&")
    again = await client.get(link)
    assert (again.status_code, again.text.count('<svg class="chart"')) == (200, 5)


async def test_a_slow_history_query_does_not_break_the_page(
    queue: Queue, client: httpx.AsyncClient
) -> None:
    await queue.enqueue("letters")
    await queue.store.fetch("alter table howdah.measure_history rename to slow")
    await queue.store.fetch(
        "create view howdah.measure_history as select s.* from howdah.slow as s, pg_sleep(60)"
    )
    await queue.store.fetch("insert into howdah.slow (at, step, job_type) values (now(), '0', '')")
    html = (await client.get("/")).text
    assert "The query of the history took too long" in html
    assert 'data-key="letters"' in html


async def test_live_updates_do_not_query_the_history_each_time(
    page: Page, web: Served, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("howdah.web.cache.CHARTS_MAX_AGE", 600.0)
    await queue.enqueue("letters")
    await store_history(queue, "letters")
    await page.goto(f"{web.url}/?range=day")
    await expect(page.locator("svg.chart")).to_have_count(5)
    queries = RecordedQueries(monkeypatch)
    for n in range(2, 5):
        await queue.enqueue("letters")
        await expect(page.locator("tr[data-key=letters] td").first).to_have_text(str(n))
    assert queries.times("howdah.scheduled_counts(") > 0
    assert queries.times("howdah.measure_history") == 0
    await expect(page.locator("svg.chart")).to_have_count(5)
    await expect(page.locator(".ranges [aria-current]")).to_have_text("Day")


async def test_charts_are_sent_again_only_when_they_changed(queue: Queue) -> None:
    await queue.enqueue("letters")
    await store_history(queue, "letters")
    context = DashboardContext(queue, Settings())
    opened = Request({"type": "http", "query_string": b"", LIVE: True})
    first = await load(context, opened, "/types/letters", "letters")
    assert (len(first.charts), first.same) == (5, False)
    again = [await load(context, opened, "/types/letters", "letters") for _ in range(3)]
    assert [(loaded.charts, loaded.same) for loaded in again] == [([], True)] * 3
    other = Request({"type": "http", "query_string": b"", LIVE: True})
    assert not (await load(context, other, "/types/letters", "letters")).same
    loaded = Request({"type": "http", "query_string": b""})
    for _ in range(2):
        assert not (await load(context, loaded, "/types/letters", "letters")).same


async def test_a_new_point_is_drawn_on_an_open_page(
    page: Page, web: Served, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("howdah.web.cache.CHARTS_MAX_AGE", 0.5)
    await queue.enqueue("letters")
    await page.goto(f"{web.url}/types/letters")
    await expect(page.locator("#chart-throughput")).to_contain_text("nothing was measured yet")
    await store_history(queue, "letters")
    await expect(page.locator("#chart-throughput .line")).to_have_count(1)


@pytest.mark.parametrize("width", [390, 1440])
async def test_charts_fit_every_screen_and_axe_finds_nothing_in_both_themes(
    browser: Browser, queue: Queue, width: int
) -> None:
    await queue.enqueue("letters")
    await store_history(queue, "letters")
    async with served(queue, access=open_access()) as running:
        page = await browser.new_page(viewport={"width": width, "height": 800})
        for query in ("", "?range=week", "?range=day&view=table"):
            await page.goto(f"{running.url}/types/letters{query}")
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
            await axe_finds_nothing(page)
        await page.close()


async def test_charts_need_no_script(browser: Browser, queue: Queue) -> None:
    await queue.enqueue("letters")
    await store_history(queue, "letters")
    async with served(queue) as running:
        page = await browser.new_page(java_script_enabled=False)
        await page.goto(running.login_link)
        await page.get_by_role("link", name="Week").click()
        await expect(page.locator("svg.chart")).to_have_count(5)
        await expect(page.locator(".ranges [aria-current]")).to_have_text("Week")
        await page.get_by_role("link", name="Show as a table").click()
        await expect(page.locator(".over-time-table tbody tr")).to_have_count(84)
        await page.close()


# ── the API ──


async def test_the_api_returns_the_same_history(client: httpx.AsyncClient, queue: Queue) -> None:
    await store_history(queue, "a/b")
    for path, job_type in (("/measures", None), ("/types/a%2Fb/measures", "a/b")):
        for range in Range:
            history = (await client.get(f"/api/v1{path}", params={"range": range})).json()
            assert (history["range"], history["job_type"]) == (range, job_type)
            assert history["step"] == range.step.total_seconds()
            assert len(history["points"]) == range.points
            known = [point for point in history["points"] if point["completed"] is not None]
            assert len(known) >= 55
            assert 0 < known[5]["run"]["p50"] < 1
            assert known[5]["waiting"]["more"] is False
    assert (await client.get("/api/v1/measures")).json()["range"] == "hour"
    refused = await client.get("/api/v1/measures?range=month")
    assert refused.status_code == 400
    assert "range" in refused.json()["error"]["message"]
