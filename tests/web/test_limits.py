"""Limits: the pages of limits and rules, and changes by forms and by programs."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from urllib.parse import quote

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from howdah import Queue, Rate, observe
from howdah.observe import Limits
from howdah.web import AppAccess, dashboard
from howdah.web.render import NOTHING
from tests.web.axe import axe_finds_nothing
from tests.web.forms import flash_text, send
from tests.web.html_tables import figures, row
from tests.web.serving import Served, open_access, served

ODD = "a/b?c=d&e#f <b>g</b>/é"
API = "/api/v1"
BAD_NUMBERS = ("0", "-1", "1.5", "many", "9" * 30, "²")


async def used(queue: Queue) -> None:
    """Make a limit of three: two of its jobs are at work, one is in line, four wait."""
    await queue.set_limit("openai", at_once=3)
    await queue.set_type_limit("mail", limit="openai")
    await queue.set_type_limit("book", ordered=True)
    await queue.enqueue_many(queue.draft("mail") for _ in range(7))
    await queue.store.fetch(
        "insert into howdah.jobs (job_type, key) select 'book', 'one' from generate_series(1, 5)"
    )
    for _ in range(3):
        await queue.store.fetch("select howdah.admit()")
    assert len(await queue.claim(["mail"], 2, worker_id="w")) == 2


def said(answer: httpx.Response) -> str:
    """Return the flash message, without the quotes of a cookie that has a slash."""
    return flash_text(answer).strip('"')


async def read(queue: Queue) -> Limits:
    return await observe.limits(queue.store)


@pytest.fixture
async def read_only(queue: Queue) -> AsyncGenerator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(dashboard(queue, access=open_access(), read_only=True))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


# ── what the pages show ──


async def test_the_page_lists_limits_and_rules(client: httpx.AsyncClient, queue: Queue) -> None:
    await used(queue)
    await queue.set_limit("tenants", rate=Rate(90, per=90, burst=4), per_key=True)
    html = (await client.get("/limits")).text
    limit = row(html, "openai")
    assert (limit["Admitted"], limit["At work"], limit["Waiting"]) == ("3 of 3", "2", "4")
    assert (limit["Rate"], limit["Types"]) == ("any", "mail")
    assert re.fullmatch(r".* ago by \w+", limit["Changed"])
    tenants = row(html, "tenants")
    assert (tenants["Limit"], tenants["Rate"]) == ("tenants per key", "90 per 90s, burst 4")
    rules = html[html.index("Rules of types") :]
    book = row(rules, "book")
    assert (book["Jobs of one key"], book["Limit"], book["Wait for a slot"]) == (
        "one after the other",
        NOTHING,
        "4",
    )
    assert row(rules, "mail")["Limit"] == "openai"


async def test_a_queue_without_limits_says_so(client: httpx.AsyncClient) -> None:
    html = (await client.get("/limits")).text
    assert "There is no named limit." in html
    assert "No type has a rule." in html


async def test_the_page_of_a_limit_shows_its_use(client: httpx.AsyncClient, queue: Queue) -> None:
    await used(queue)
    html = (await client.get("/limits/openai")).text
    numbers = figures(html)
    assert (numbers["admitted"], numbers["at work"], numbers["waiting"]) == ("3 of 3", "2", "4")
    assert row(html[html.index("Types that name it") :], "mail")["Limit"] == "openai"
    for chart in ("chart-admitted", "chart-waiting", "chart-attempts"):
        assert f'id="{chart}"' in html


async def test_charts_and_the_table_show_the_history(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await used(queue)
    assert await queue.store.fetchval("select howdah.sample_limits()")
    for range in ("hour", "day", "week"):
        html = (await client.get("/limits/openai", params={"range": range})).text
        assert "newest peak 3" not in html
        assert f"Admitted, jobs; 3 allowed, last {range}: peak 3, mean 3" in html
        assert f"Waiting, jobs, the most at once, last {range}: newest 4" in html
    html = (await client.get("/limits/openai", params={"view": "table"})).text
    cells = re.findall(r'<td class="number">([^<]*)</td>', html[html.index("over-time-table") :])
    assert cells[:4] == ["3", "3.0", "4", NOTHING]
    assert (await client.get("/limits/openai", params={"range": "year"})).status_code == 400


async def test_an_unknown_limit_is_not_found_and_similar_ones_are_named(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await queue.set_limit("openai", at_once=1)
    for path in ("/limits/opnai", f"{API}/limits/opnai"):
        refused = await client.get(path)
        assert refused.status_code == 404
        assert "did you mean" in refused.text
        assert "openai" in refused.text


async def test_counts_that_take_too_long_are_missing(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await used(queue)
    await queue.store.fetch(
        "alter function howdah.limit_counts(int, int, text) rename to slow_counts"
    )
    await queue.store.fetch(
        "create function howdah.limit_counts(int, int) returns setof howdah.limits "
        "language sql as $$ select l.* from howdah.limits as l, pg_sleep(60) $$"
    )
    html = (await client.get("/limits")).text
    assert "Counting took too long: limits." in html
    assert row(html, "openai")["Waiting"] == NOTHING


# ── changes from pages ──


async def test_a_limit_is_made_changed_and_removed_by_forms(
    client: httpx.AsyncClient, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "howdah.web")
    fields = [("limit", ODD), ("at_once", "1,000"), ("rate", "5"), ("per", "90s"), ("burst", "2")]
    answer = await send(client, "/limits/set", [*fields, ("per_key", "on")])
    assert said(answer) == f"The limit {ODD} is set."
    assert answer.headers["location"] == f"/limits/{quote(ODD)}"
    (limit,) = (await read(queue)).limits
    assert (limit.name, limit.at_once, limit.rate, limit.burst) == (ODD, 1000, 5, 2)
    assert (limit.per_key, limit.per and limit.per.total_seconds()) == (True, 90)
    shown = await client.get(answer.headers["location"])
    assert shown.status_code == 200
    assert "<b>g" not in shown.text
    assert (
        'name="per" size="7" autocomplete="off" placeholder="1s, 1m, 1h" value="90s"' in shown.text
    )
    answer = await send(client, "/limits/set", [("limit", ODD), ("at_once", "2"), ("rate", " ")])
    (limit,) = (await read(queue)).limits
    assert (limit.at_once, limit.rate, limit.per_key) == (2, None, False)
    answer = await send(client, "/limits/remove", [("limit", ODD)])
    assert (said(answer), answer.headers["location"]) == (
        f"The limit {ODD} is removed.",
        "/limits",
    )
    assert (await read(queue)).limits == []
    lines = [message for message in caplog.messages if message.startswith("web.action")]
    assert [re.findall(r"did=(\w+)", line) for line in lines] == [
        ["set_limit"],
        ["set_limit"],
        ["remove_limit"],
    ]
    assert 'at_once="1000" rate="5"' in lines[0]


async def test_who_changed_it_is_kept(queue: Queue) -> None:
    long = "kim" * 100
    for who in ("kim <b>", long):
        transport = httpx.ASGITransport(dashboard(queue, access=AppAccess(lambda _, who=who: who)))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            said(await send(client, "/limits/set", [("limit", "api"), ("at_once", "1")]))
            said(await send(client, "/limits/set-type", [("type", "mail"), ("at_once", "1")]))
        found = await read(queue)
        assert found.limits[0].changed_by == who[:200]
        assert found.rules[0].changed_by == who[:200]


async def test_the_rule_of_a_type_is_set_and_removed_by_forms(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await queue.set_limit("openai", at_once=1)
    fields = [("type", ODD), ("at_once", "3"), ("limit", "openai")]
    assert said(await send(client, "/limits/set-type", fields)) == f"The rule of {ODD} is set."
    (rule,) = (await read(queue)).rules
    assert (rule.job_type, rule.at_once, rule.ordered, rule.limit) == (ODD, 3, False, "openai")
    html = (await client.get("/limits", params={"type": ODD})).text
    assert '<details class="card" id="rule" open>' in html
    assert "<option selected>openai</option>" in html
    fields = [("type", ODD), ("at_once", ""), ("ordered", "on"), ("limit", "")]
    said(await send(client, "/limits/set-type", fields))
    (rule,) = (await read(queue)).rules
    assert (rule.at_once, rule.ordered, rule.limit) == (1, True, None)
    said(await send(client, "/limits/clear-type", [("type", ODD)]))
    (rule,) = (await read(queue)).rules  # jobs may still be in a run: see clear_type_limit
    assert (rule.at_once, rule.ordered, rule.declared) == (1, False, False)
    said(await send(client, "/limits/clear-type", [("type", ODD)]))
    assert (await read(queue)).rules == []
    again = said(await send(client, "/limits/clear-type", [("type", ODD)]))
    assert again == f"{ODD} has no rule."


@pytest.mark.parametrize(
    ("path", "fields", "status", "reason"),
    [
        *(
            (
                "/limits/set",
                {"limit": "api", name: number},
                400,
                name.replace("rate", "(rate|count)"),
            )
            for name in ("at_once", "rate")
            for number in BAD_NUMBERS
        ),
        ("/limits/set", {"limit": "api"}, 400, "needs at_once or a rate"),
        ("/limits/set", {"limit": "a:b", "at_once": "1"}, 400, "no colon"),
        ("/limits/set", {"limit": "", "at_once": "1"}, 400, "name of a limit"),
        ("/limits/set", {"limit": "a" * 101, "at_once": "1"}, 400, "name of a limit"),
        ("/limits/set", {"limit": "a\0b", "at_once": "1"}, 400, "name of a limit"),
        ("/limits/set", {"limit": "api", "burst": "1", "at_once": "1"}, 400, "burst needs a rate"),
        ("/limits/set", {"limit": "api", "rate": "1", "per": "soon"}, 400, "number and a unit"),
        ("/limits/set", {"limit": "api", "rate": "1", "per": "0s"}, 400, "longer than 0"),
        (
            "/limits/set",
            {"limit": "api", "rate": "1", "per": "9" * 30 + "d"},
            400,
            "number and a unit",
        ),
        ("/limits/set", {"limit": "api", "rate": "1", "burst": "0"}, 400, "burst"),
        ("/limits/remove", {"limit": "opnai"}, 404, "did you mean"),
        ("/limits/remove", {}, 400, "name of a limit"),
        ("/limits/set-type", {"type": "", "at_once": "1"}, 400, "type"),
        ("/limits/set-type", {"type": "mail", "limit": "opnai"}, 404, "did you mean"),
        ("/limits/set-type", {"type": "mail", "at_once": "0"}, 400, "at_once"),
        ("/limits/set-type", {"type": "mail", "at_once": "2", "ordered": "on"}, 400, "must be 1"),
        ("/limits/set-type", {"type": "mail", "at_once": "2", "fair": "on"}, 400, "or fair"),
        ("/limits/clear-type", {}, 400, "no type was named"),
    ],
)
async def test_bad_input_is_refused_and_changes_nothing(
    client: httpx.AsyncClient,
    queue: Queue,
    path: str,
    fields: dict[str, str],
    status: int,
    reason: str,
) -> None:
    await queue.set_limit("openai", at_once=4)
    before = (await read(queue)).limits
    answer = await send(client, path, list(fields.items()))
    assert answer.status_code == status, answer.text
    assert re.search(reason, answer.text)
    after = await read(queue)
    assert (after.limits, after.rules) == (before, [])


@pytest.mark.parametrize("path", ["set", "remove", "set-type", "clear-type"])
async def test_a_change_needs_the_csrf_token_and_a_dashboard_that_may_write(
    client: httpx.AsyncClient, read_only: httpx.AsyncClient, queue: Queue, path: str
) -> None:
    await queue.set_limit("openai", at_once=4)
    await queue.set_type_limit("mail", limit="openai")
    before = await read(queue)
    fields = {"limit": "openai", "type": "mail", "at_once": "9"}
    refused = await client.post(f"/limits/{path}", data={**fields, "csrf_token": "forged"})
    assert refused.status_code == 403
    answer = await send(read_only, f"/limits/{path}", list(fields.items()))
    assert answer.status_code == 403
    after = await read(queue)
    assert (after.limits, after.rules) == (before.limits, before.rules)


async def test_a_read_only_page_has_no_form(read_only: httpx.AsyncClient, queue: Queue) -> None:
    await used(queue)
    for page in ("/limits", "/limits/openai", "/limits?type=mail"):
        html = (await read_only.get(page)).text
        assert "openai" in html
        assert 'name="csrf_token"' not in html
        assert ">Change<" not in html


# ── changes from programs ──


async def test_a_program_changes_what_it_names(client: httpx.AsyncClient, queue: Queue) -> None:
    async def set_limit(**body: object) -> httpx.Response:
        html = (await client.get("/limits")).text
        token = html.split('name="howdah-csrf-token" content="')[1].split('"')[0]
        headers = {"x-howdah-csrf-token": token}
        return await client.post(f"{API}/limits/a%2Fb/set", json=body, headers=headers)

    unknown = await set_limit(per_key=True)
    assert unknown.status_code == 404
    made = await set_limit(at_once=3, rate={"count": 100, "per": 60, "burst": 5})
    assert made.status_code == 200
    assert {key: made.json()[key] for key in ("at_once", "rate", "per", "burst")} == {
        "at_once": 3,
        "rate": 100,
        "per": 60,
        "burst": 5,
    }
    changed = (await set_limit(at_once=None)).json()
    assert (changed["at_once"], changed["rate"], changed["burst"]) == (None, 100, 5)
    nothing = await set_limit(rate=None)
    assert (nothing.status_code, "needs at_once or a rate" in nothing.text) == (409, True)
    for body in (
        {"at_once": 0},
        {"rate": {"count": 0}},
        {"rate": {"count": 1, "per": 0}},
        {"x": 1},
    ):
        assert (await set_limit(**body)).status_code == 400
    (limit,) = (await client.get(f"{API}/limits")).json()["limits"]
    assert (limit["name"], limit["at_once"], limit["rate"]) == ("a/b", None, 100)
    assert (await client.get(f"{API}/limits/a%2Fb")).json() == limit
    points = (await client.get(f"{API}/limits/a%2Fb/measures")).json()["points"]
    assert len(points) == 60


async def test_a_program_sets_the_rule_of_a_type(client: httpx.AsyncClient, queue: Queue) -> None:
    html = (await client.get("/limits")).text
    token = html.split('name="howdah-csrf-token" content="')[1].split('"')[0]
    headers = {"x-howdah-csrf-token": token}

    async def post(path: str, **body: object) -> httpx.Response:
        return await client.post(f"{API}/types/mail/{path}", json=body, headers=headers)

    await queue.set_limit("openai", at_once=1)
    assert (await post("set-limit", at_once=2, limit="openai")).json() == {"changed": True}
    (rule,) = (await client.get(f"{API}/limits")).json()["rules"]
    assert (rule["job_type"], rule["at_once"], rule["limit"]) == ("mail", 2, "openai")
    assert (await post("set-limit", limit="opnai")).status_code == 404
    assert (await post("set-limit", at_once=2, ordered=True)).status_code == 409
    assert (await post("set-limit", ordered=True, fair=True)).status_code == 409
    assert (await post("set-limit", fair=True)).json() == {"changed": True}
    assert (await post("clear-limit")).json() == {"changed": True}
    assert (await post("clear-limit")).json() == {"changed": False}
    refused = await client.post(f"{API}/limits/opnai/remove", headers=headers)
    assert refused.status_code == 404


# ── in a browser ──


async def test_a_limit_is_changed_and_removed_in_a_browser(
    page: Page, web: Served, queue: Queue
) -> None:
    await used(queue)
    await page.goto(f"{web.url}/limits")
    await page.get_by_role("link", name="openai").first.click()
    field = page.get_by_role("textbox", name="At once")
    await field.fill("5")
    await expect(page.locator("#live-status")).to_have_class("live-status on beat")
    await expect(field).to_have_value("5")  # a live update keeps what was typed
    await page.get_by_role("button", name="Set the limit").click()
    await expect(page.get_by_text("The limit openai is set.")).to_be_visible()
    await expect(page.locator(".figures")).to_contain_text("of 5")
    page.once("dialog", lambda dialog: dialog.dismiss())
    await page.get_by_role("button", name="Remove the limit").click()
    assert len((await read(queue)).limits) == 1, "it was not confirmed"
    page.once("dialog", lambda dialog: dialog.accept())
    await page.get_by_role("button", name="Remove the limit").click()
    await expect(page.get_by_text("The limit openai is removed.")).to_be_visible()
    assert (await read(queue)).limits == []


@pytest.mark.parametrize("width", [390, 1440])
async def test_the_pages_fit_and_axe_finds_nothing(
    queue: Queue, browser: Browser, width: int
) -> None:
    await used(queue)
    await queue.set_limit("long-name/" * 10, at_once=2**31 - 1, per_key=True)
    await queue.set_type_limit("w" * 200, limit="long-name/" * 10)
    await queue.store.fetchval("select howdah.sample_limits()")
    async with served(queue, access=open_access()) as web:
        page = await browser.new_page(viewport={"width": width, "height": 900})
        for path in ("/limits", f"/limits?type={'w' * 200}", f"/limits/{quote('long-name/' * 10)}"):
            await page.goto(web.url + path)
            assert (
                await page.evaluate(
                    "document.documentElement.scrollWidth - document.documentElement.clientWidth"
                )
                == 0
            ), path
            await axe_finds_nothing(page)
        await page.close()
