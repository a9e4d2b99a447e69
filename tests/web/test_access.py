"""Access: a link that works once, a cookie nobody can make, a password nobody can guess."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from itsdangerous import TimestampSigner, URLSafeTimedSerializer
from playwright.async_api import Page, expect
from starlette.requests import Request

from howdah import Queue
from howdah.errors import BadInput
from howdah.web import Mine, OneTimeLink, Password, TrustedHeader, dashboard
from howdah.web.access import Access, Seats
from howdah.web.access.patience import FORGIVEN, LONGEST, MANY, REMEMBERED, Patience, address_of
from howdah.web.access.seat import COOKIE, LASTS
from tests.web.axe import axe_finds_nothing
from tests.web.serving import served

SECRET = "a secret of sixteen and more"
WORDS = "correct horse"


@asynccontextmanager
async def visiting(
    queue: Queue, access: Access, address: str = "127.0.0.1", **options: Any
) -> AsyncGenerator[httpx.AsyncClient]:
    """HTTP to a dashboard, from an address."""
    app = options.pop("app", None) or dashboard(queue, access=access, secret=SECRET, **options)
    transport = httpx.ASGITransport(app, client=(address, 4711))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


async def is_in(client: httpx.AsyncClient, **headers: str) -> bool:
    return (await client.get("/", headers=headers)).status_code == 200


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


# ── the one-time link ──


async def test_the_link_works_once(queue: Queue) -> None:
    link = OneTimeLink()
    path = link.path
    async with visiting(queue, link) as first, visiting(queue, link) as second:
        assert (await first.head(path)).status_code == 200  # a look does not use it up
        answer = await first.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert await is_in(first)
        again = await second.get(path)
        assert again.status_code == 403
        assert "This link does not open anything" in again.text
        assert not again.cookies
        assert not await is_in(second)


@pytest.mark.parametrize("guess", ["", "?token=", "?token=None", "?token=%C3%A4", "?token=x"])
async def test_a_guessed_link_opens_nothing(queue: Queue, guess: str) -> None:
    link = OneTimeLink()
    async with visiting(queue, link) as client:
        assert (await client.get(f"/enter{guess}")).status_code == 403
        await client.get(link.path)
        assert (await client.get(f"/enter{guess}")).status_code == 403  # nor when it was used


# ── the cookie ──


async def entered(queue: Queue, **options: Any) -> str:
    """Come in by a link; returns the cookie."""
    link = OneTimeLink()
    async with visiting(queue, link, **options) as client:
        return (await client.get(link.path)).headers["set-cookie"]


async def test_the_cookie_is_for_this_dashboard_and_out_of_reach_of_scripts(queue: Queue) -> None:
    cookie = await entered(queue)
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Path=/;" in cookie
    assert f"Max-Age={int(LASTS.total_seconds())}" in cookie
    assert "Secure" not in cookie


@pytest.mark.parametrize(
    ("scheme", "forwarded", "secure"),
    [
        ("http", None, False),
        ("https", None, True),
        ("http", "https", True),
        ("http", "http", False),
    ],
)
async def test_over_https_the_cookie_is_never_sent_in_the_open(
    queue: Queue, scheme: str, forwarded: str | None, secure: bool
) -> None:
    link = OneTimeLink()
    headers = {} if forwarded is None else {"x-forwarded-proto": forwarded}
    async with visiting(queue, link) as client:
        answer = await client.get(f"{scheme}://localhost{link.path}", headers=headers)
    assert ("Secure" in answer.headers["set-cookie"]) is secure


def signed(
    secret: str, who: object = "local", salt: str = "howdah.web.seat", age: float = 0
) -> str:
    class Earlier(TimestampSigner):
        def get_timestamp(self) -> int:
            return super().get_timestamp() - int(age)

    return URLSafeTimedSerializer(secret, salt=salt, signer=Earlier).dumps(who)


async def test_a_cookie_that_we_did_not_sign_is_worth_nothing(queue: Queue) -> None:
    good = signed(SECRET)
    last = LASTS.total_seconds()
    wrong = {
        "of another secret": signed("another secret, as long"),
        "for another purpose": signed(SECRET, salt="another"),
        "of somebody else": signed(SECRET, who="admin").partition(".")[0] + good[good.index(".") :],
        "too old": signed(SECRET, age=last + 2),
        "not a name": signed(SECRET, who=7),
        "cut": good[:-1],
        "empty": "",
        "nonsense": "a.b.c",
    }
    async with visiting(queue, OneTimeLink()) as client:

        async def let_in(cookie: str) -> bool:
            return await is_in(client, cookie=f"{COOKIE}={cookie}")

        assert await let_in(good)
        assert await let_in(signed(SECRET, age=last - 60))
        assert [name for name, cookie in wrong.items() if await let_in(cookie)] == []


async def test_two_dashboards_of_one_machine_keep_their_visitors(queue: Queue) -> None:
    one, two = OneTimeLink(), OneTimeLink()
    apps = {
        "http://localhost:1": dashboard(queue, access=one),
        "http://localhost:2": dashboard(queue, access=two),
    }
    mounts = {url: httpx.ASGITransport(app) for url, app in apps.items()}
    async with httpx.AsyncClient(mounts=mounts) as client:
        await client.get(f"http://localhost:1{one.path}")
        await client.get(f"http://localhost:2{two.path}")
        for url in apps:
            assert (await client.get(f"{url}/")).status_code == 200


def test_a_secret_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(BadInput, match="16 characters at least"):
        Seats("short")


# ── the password ──


async def test_the_password_opens_it_in_a_browser_and_leaving_closes_it(
    queue: Queue, browser: Any
) -> None:
    async with served(queue, access=Password(WORDS, "ada")) as web:
        page: Page = await browser.new_page()
        await page.goto(web.url + "/jobs")
        await expect(page).to_have_title("Enter · howdah")
        await axe_finds_nothing(page)
        await page.get_by_label("Password").fill("wrong horse")
        await page.get_by_role("button", name="Enter").click()
        await expect(page.get_by_role("alert")).to_be_visible()
        await page.get_by_label("Password").fill(WORDS)
        await page.get_by_role("button", name="Enter").click()
        await expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
        await page.get_by_role("button", name="Leave").click()
        await expect(page).to_have_title("Enter · howdah")
        await page.goto(web.url + "/jobs")
        await expect(page).to_have_title("Enter · howdah")
        await page.close()


@pytest.mark.parametrize(
    ("header", "let_in"),
    [
        (basic("admin", WORDS), True),
        (basic("admin", WORDS + "x"), False),
        (basic("root", WORDS), False),
        (basic("", ""), False),
        (f"Basic {WORDS}", False),
        ("Basic", False),
        ("Basic \xe9", False),
        ("Basic /w==", False),
        (f"Bearer {WORDS}", False),
    ],
)
async def test_programs_send_name_and_password_as_basic(
    queue: Queue, header: str, let_in: bool
) -> None:
    async with visiting(queue, Password(WORDS)) as client:
        answer = await client.get(
            "/metrics", headers=[(b"authorization", header.encode("latin-1"))]
        )
    assert answer.status_code == (200 if let_in else 303)


async def test_after_many_wrong_answers_none_is_read_from_there(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    now = 0.0
    app = dashboard(queue, access=Password(WORDS, patience=Patience(lambda: now)))
    access = OneTimeLink()  # not asked: the app is given
    async with (
        visiting(queue, access, "10.0.0.1", app=app) as thief,
        visiting(queue, access, "10.0.0.2", app=app) as owner,
    ):
        right = basic("admin", WORDS)
        for _ in range(MANY):
            assert not await is_in(thief, authorization=basic("admin", "guess"))
        assert not await is_in(thief, authorization=right)
        form = {"user": "admin", "password": WORDS}
        refused = await thief.post("/login", data=form)
        assert refused.status_code == 429
        assert "Wait a minute" in refused.text
        assert await is_in(owner, authorization=right)
        assert (await owner.post("/login", data=form)).status_code == 303
        now += FORGIVEN
        assert await is_in(thief, authorization=right)
    assert caplog.messages.count('web.refused from="10.0.0.1"') == MANY


async def test_a_wrong_answer_makes_the_next_one_wait(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    sleep = asyncio.sleep

    async def counted(seconds: float) -> None:
        waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr("howdah.web.access.password.asyncio.sleep", counted)
    async with visiting(queue, Password(WORDS)) as client:

        async def tried(password: str) -> int:
            form = {"user": "admin", "password": password}
            return (await client.post("/login", data=form)).status_code

        # side by side: each counts from its beginning, so none is free but the first
        assert await asyncio.gather(*(tried("guess") for _ in range(10))) == [403] * 10
        assert await tried(WORDS) == 303
        assert await tried(WORDS) == 303
    before = [*range(10), 10, 10]  # wrong answers that each found; a right one takes itself back
    assert [one for one in waits if one] == [min(0.1 * 2**n, LONGEST) for n in before if n]


def test_both_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def same(a: bytes, b: bytes) -> bool:
        compared.append((a, b))
        return a == b

    monkeypatch.setattr("howdah.web.access.password.hmac.compare_digest", same)
    access = Password(WORDS)
    scope = {
        "type": "http",
        "headers": [(b"authorization", basic("nobody", "guess").encode())],
        "client": ("10.0.0.1", 1),
    }
    asyncio.run(access.who(Request(scope), Seats()))
    assert compared == [(b"nobody", b"admin"), (b"guess", WORDS.encode())]


@pytest.mark.parametrize("password", ["", "short"])
def test_a_short_password_is_refused(password: str) -> None:
    with pytest.raises(BadInput, match="8 characters at least"):
        Password(password)


# ── patience ──


def test_patience_forgets_and_does_not_grow_for_ever() -> None:
    now = 0.0
    patience = Patience(lambda: now)
    for n in range(REMEMBERED + 50):
        patience.count(str(n))
    assert patience.wait("0") == 0.0  # the oldest made room
    assert patience.wait(str(REMEMBERED + 49)) == 0.2
    now += FORGIVEN
    assert patience.wait(str(REMEMBERED + 49)) == 0.0


def test_a_right_answer_takes_back_its_own_try_and_no_other() -> None:
    patience = Patience()
    for _ in range(3):
        patience.count("here")
    tried = patience.count("here")
    before = patience.wait("here")
    patience.forgive("here", tried)
    assert (before, patience.wait("here")) == (1.6, 0.8)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2::ffff", "2001:db8:1:2::"),
        ("a socket", "a socket"),
        (None, ""),
    ],
)
def test_a_machine_has_one_address(host: str | None, address: str) -> None:
    scope: dict[str, Any] = {"type": "http", "client": None if host is None else (host, 1)}
    assert address_of(Request(scope)) == address


# ── the proxy's header ──


@pytest.mark.parametrize(
    ("address", "let_in"),
    [
        ("10.0.0.7", True),
        ("::ffff:10.0.0.7", True),
        ("10.0.0.8", False),
        ("192.168.3.4", True),
        ("192.169.3.4", False),
        ("testclient", False),
    ],
)
async def test_the_header_counts_from_the_named_proxies_only(
    queue: Queue, address: str, let_in: bool
) -> None:
    access = TrustedHeader("X-User", ["10.0.0.7", "192.168.0.0/16"])
    async with visiting(queue, access, address) as client:
        assert await is_in(client, **{"x-user": "ada"}) is let_in
        assert not await is_in(client)
        assert not await is_in(client, **{"x-user": " "})
        twice = [("x-user", "admin"), ("x-user", "ada")]
        assert (await client.get("/", headers=twice)).status_code == 401


def test_a_header_without_a_proxy_is_refused() -> None:
    with pytest.raises(BadInput, match="name the addresses of the proxy"):
        TrustedHeader("X-User", [])
    with pytest.raises(BadInput, match="an address such as"):
        TrustedHeader("X-User", ["the-proxy"])


# ── the application's own ──


def by_header(request: Request) -> str | None:
    return request.headers.get("x-me")


async def slowly(request: Request) -> str | None:
    await asyncio.sleep(0)
    return request.headers.get("x-me")


@pytest.mark.parametrize("who", [by_header, slowly])
async def test_the_applications_own_function_decides(
    queue: Queue, who: Callable[[Request], Any], caplog: pytest.LogCaptureFixture
) -> None:
    async with visiting(queue, Mine(who)) as client:
        assert await is_in(client, **{"x-me": "ada"})
        assert not await is_in(client)
        assert not await is_in(client, **{"x-me": ""})


async def test_who_enters_is_in_the_log(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "howdah.web"):
        await entered(queue)
    assert 'web.entered who="local" from="127.0.0.1"' in caplog.messages
