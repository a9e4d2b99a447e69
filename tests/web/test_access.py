"""Access: a link that works once, a cookie nobody can make, a password nobody can guess."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from itsdangerous import TimestampSigner, URLSafeTimedSerializer
from playwright.async_api import Page, expect
from starlette.exceptions import HTTPException
from starlette.requests import Request

from howdah import Queue
from howdah.errors import BadInput
from howdah.web import Mine, OneTimeLink, Password, TrustedHeader, dashboard
from howdah.web.access import Access, Seats
from howdah.web.access.client import Proxies, address_of
from howdah.web.access.revoked import Revoked
from howdah.web.access.seat import COOKIE, LASTS
from howdah.web.access.throttle import FORGIVEN, FULL, LONGEST, REMEMBERED, SHARED, Throttle
from tests.web.axe import axe_finds_nothing
from tests.web.serving import served

SECRET = "a secret of thirty-two characters or more"
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
        assert again.status_code == 410
        assert "This link was used already" in again.text
        assert "start it again" in again.text
        assert not again.cookies
        assert not await is_in(second)


async def test_a_used_link_leads_on_whoever_is_in_already(queue: Queue) -> None:
    link = OneTimeLink()
    path = link.path
    async with visiting(queue, link) as client:
        await client.get(path)
        again = await client.get(path)
        assert (again.status_code, again.headers["location"]) == (303, "/")
        assert "set-cookie" not in again.headers
        assert await is_in(client)
        client.cookies.clear()
        assert (await client.get(path)).status_code == 410


@pytest.mark.parametrize("guess", ["", "?token=", "?token=None", "?token=%C3%A4", "?token=x"])
async def test_a_guessed_link_opens_nothing(queue: Queue, guess: str) -> None:
    link = OneTimeLink()
    async with visiting(queue, link) as client:
        assert (await client.get(f"/enter{guess}")).status_code == 403
        await client.get(link.path)
        client.cookies.clear()
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
    secret: str,
    who: object = ("local", "a session"),
    salt: str = "howdah.web.seat",
    age: float = 0,
    bound_to: str = "",
) -> str:
    class Earlier(TimestampSigner):
        def get_timestamp(self) -> int:
            return super().get_timestamp() - int(age)

    key = hmac.new(secret.encode(), f"session:{bound_to}".encode(), hashlib.sha256).hexdigest()
    return URLSafeTimedSerializer(key, salt=salt, signer=Earlier).dumps(who)


async def test_a_cookie_that_we_did_not_sign_is_worth_nothing(queue: Queue) -> None:
    good = signed(SECRET)
    other = signed(SECRET, who=("admin", "a session"))
    last = LASTS.total_seconds()
    wrong = {
        "of another secret": signed("another secret, as long"),
        "for another purpose": signed(SECRET, salt="another"),
        "of somebody else": other.partition(".")[0] + good[good.index(".") :],
        "too old": signed(SECRET, age=last + 2),
        "not a session": signed(SECRET, who="local"),
        "not a name": signed(SECRET, who=(7, "a session")),
        "of another password": signed(SECRET, bound_to="admin\0correct horse"),
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
    with pytest.raises(BadInput, match="32 characters at least"):
        Seats("short")


async def test_a_copied_cookie_ends_when_its_session_is_left(queue: Queue) -> None:
    app = dashboard(queue, access=Password(WORDS), secret=SECRET)
    form = {"user": "admin", "password": WORDS}
    async with (
        visiting(queue, OneTimeLink(), app=app) as one,
        visiting(queue, OneTimeLink(), app=app) as other,
    ):
        await one.post("/login", data=form)
        await other.post("/login", data=form)
        copied = f"{COOKIE}={one.cookies[COOKIE]}"
        assert one.cookies[COOKIE] != other.cookies[COOKIE]
        assert (await one.post("/leave")).status_code == 303
        assert not await is_in(one)
        assert not await is_in(one, cookie=copied)
        assert await is_in(other)  # the same name, another session


async def test_a_cookie_ends_with_the_password_it_was_given_for(queue: Queue) -> None:
    form = {"user": "admin", "password": WORDS}
    async with visiting(queue, Password(WORDS)) as before:
        await before.post("/login", data=form)
        cookie = f"{COOKIE}={before.cookies[COOKIE]}"
    for access, holds in (
        (Password(WORDS), True),  # another process with the same secret, or a restart
        (Password("another horse"), False),
        (Password(WORDS, "ada"), False),
        (OneTimeLink(), False),
    ):
        async with visiting(queue, access) as after:
            assert await is_in(after, cookie=cookie) is holds


def test_sessions_that_were_left_are_forgotten_when_their_cookies_have_ended() -> None:
    now = 0.0
    revoked = Revoked(100.0, lambda: now)
    for n in range(10):
        revoked.add(str(n))
        now += 20.0
    assert ("9" in revoked, "0" in revoked) == (True, False)
    assert len(revoked) <= 6


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
    assert answer.status_code == (200 if let_in else 401)


class Moved:
    """A clock that is moved, and a sleep that moves it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0)

    @property
    def throttle(self) -> Throttle:
        return Throttle(lambda: self.now, self.sleep)


async def test_wrong_passwords_lock_nobody_out(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    moved = Moved()
    app = dashboard(queue, access=Password(WORDS, throttle=moved.throttle), secret=SECRET)
    async with (
        visiting(queue, OneTimeLink(), "10.0.0.1", app=app) as inside,
        visiting(queue, OneTimeLink(), "10.0.0.1", app=app) as thief,
        visiting(queue, OneTimeLink(), "10.0.0.1", app=app) as owner,
        visiting(queue, OneTimeLink(), "10.0.0.2", app=app) as elsewhere,
    ):
        form = {"user": "admin", "password": WORDS}
        assert (await inside.post("/login", data=form)).status_code == 303
        for _ in range(100):
            assert not await is_in(thief, authorization=basic("admin", "guess"))
        moved.waits.clear()
        assert await is_in(inside)
        assert moved.waits == []  # who is in stays in, at once
        assert (await owner.post("/login", data=form)).status_code == 303
        assert await is_in(thief, authorization=basic("admin", WORDS))
        assert moved.waits == [LONGEST] * 2  # the right password, after a bounded wait
        assert (await elsewhere.post("/login", data=form)).status_code == 303
        assert moved.waits[2] < LONGEST
        moved.now += FORGIVEN
        moved.waits.clear()
        assert (await owner.post("/login", data=form)).status_code == 303
        assert moved.waits == []
    assert caplog.messages.count('web.refused from="10.0.0.1"') == 100


async def test_behind_a_named_proxy_each_client_is_counted_for_itself(queue: Queue) -> None:
    moved = Moved()
    access = Password(WORDS, throttle=moved.throttle)
    app = dashboard(queue, access=access, secret=SECRET, proxies=["10.0.0.0/24"])
    async with visiting(queue, access, "10.0.0.1", app=app) as client:

        async def waited(password: str, forwarded: str) -> float:
            moved.waits.clear()
            headers = {"authorization": basic("admin", password), "x-forwarded-for": forwarded}
            await is_in(client, **headers)
            return moved.waits[0] if moved.waits else 0.0

        for _ in range(10):
            await waited("guess", "203.0.113.7")
        assert await waited("guess", "203.0.113.7") == LONGEST
        assert await waited("guess", "192.0.2.1, 203.0.113.7, 10.0.0.9") == LONGEST
        assert await waited(WORDS, "203.0.113.8") == 0.0
        assert await waited(WORDS, "203.0.113.7, 203.0.113.8") == 0.0


async def test_tries_side_by_side_are_not_cheaper(queue: Queue) -> None:
    moved = Moved()
    async with visiting(queue, Password(WORDS, throttle=moved.throttle)) as client:

        async def tried(password: str) -> int:
            form = {"user": "admin", "password": password}
            return (await client.post("/login", data=form)).status_code

        # each counts from its beginning, so none is free but the first
        assert await asyncio.gather(*(tried("guess") for _ in range(10))) == [403] * 10
        assert await tried(WORDS) == 303
        assert await tried(WORDS) == 303
    before = [*range(10), 10, 10]  # wrong answers that each found; a right one takes itself back
    assert moved.waits == [min(0.1 * 2**n, LONGEST) for n in before if n]


async def test_a_wrong_token_waits_and_the_right_one_never_does(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    moved = Moved()
    monkeypatch.setattr("howdah.web.app.Throttle", lambda: moved.throttle)
    token = "t" * 32
    async with visiting(queue, OneTimeLink(), token=token) as client:
        for _ in range(10):
            assert not await is_in(client, authorization="Bearer guess")
        assert moved.waits == [min(0.1 * 2**n, LONGEST) for n in range(1, 10)]
        assert await is_in(client, authorization=f"Bearer {token}")
        assert not await is_in(client)
        assert len(moved.waits) == 9
    assert caplog.messages.count('web.refused from="127.0.0.1"') == 10


async def test_a_token_of_the_application_is_no_guess(queue: Queue) -> None:
    access = Mine(lambda request: "ada" if "authorization" in request.headers else None)
    async with visiting(queue, access, token="t" * 32) as client:
        for _ in range(3):
            assert await is_in(client, authorization="Bearer of the application")


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


# ── the throttle ──


def test_the_throttle_forgets_and_does_not_grow_for_ever() -> None:
    moved = Moved()
    throttle = moved.throttle
    for n in range(REMEMBERED + 50):
        throttle.count(str(n))
        moved.now += 1.0
    assert throttle.wait("0") == throttle.wait("new")  # the oldest made room
    assert throttle.wait(str(REMEMBERED + 49)) > 0.0
    moved.now += FORGIVEN
    assert throttle.wait(str(REMEMBERED + 49)) == 0.0


async def test_a_right_answer_takes_back_its_own_try_and_no_other() -> None:
    moved = Moved()
    throttle = moved.throttle
    for _ in range(3):
        throttle.count("here")
        moved.now += 1.0
    async with throttle.attempt("here") as one:
        assert throttle.wait("here") == 1.6
        one.right = True
    assert throttle.wait("here") == 0.8


def test_guesses_from_many_addresses_slow_each_other_down() -> None:
    throttle = Moved().throttle
    waits: list[float] = []
    for n in range(200):
        waits.append(throttle.wait(f"10.0.0.{n}"))
        throttle.count(f"10.0.0.{n}")
    assert waits[:20] == [0.0] * 20
    assert waits[20] == 0.2
    assert waits[-1] == LONGEST


async def test_how_many_tries_wait_is_bounded_and_shared_out() -> None:
    held = asyncio.Event()
    throttle = Throttle(lambda: 0.0, lambda _: held.wait())
    for _ in range(20):
        throttle.count("earlier")

    refusals: set[tuple[int, str]] = set()

    async def tried(client: str) -> bool:
        try:
            async with throttle.attempt(client):
                return True
        except HTTPException as refused:
            refusals.add((refused.status_code, str(refused.headers)))
            return False

    async with asyncio.TaskGroup() as group:
        flood = [group.create_task(tried("flood")) for _ in range(FULL)]
        await asyncio.sleep(0)
        assert sum(task.done() for task in flood) == FULL - SHARED
        others = [group.create_task(tried(f"one of {n}")) for n in range(FULL)]
        await asyncio.sleep(0)
        assert sum(task.done() for task in others) == SHARED
        held.set()
    assert sum(task.result() for task in flood + others) == FULL
    assert refusals == {(429, "{'Retry-After': '10'}")}
    assert await tried("flood")  # all have left


# ── where a request comes from ──


@pytest.mark.parametrize(
    ("sender", "forwarded", "client"),
    [
        ("203.0.113.1", ["198.51.100.1"], "203.0.113.1"),  # anybody can send the header
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("::ffff:10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["192.0.2.9, 198.51.100.1"], "198.51.100.1"),  # the left may be invented
        ("10.0.0.1", ["192.0.2.9", "198.51.100.1, 10.0.0.2"], "198.51.100.1"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", ["198.51.100.1:4711"], "198.51.100.1"),
        ("10.0.0.1", ["[2001:db8::1]:4711"], "2001:db8::1"),
        ("10.0.0.1", ["2001:db8::1"], "2001:db8::1"),
        ("10.0.0.1", ["198.51.100.1, nonsense"], "10.0.0.1"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("a socket", ["198.51.100.1"], "a socket"),
    ],
)
def test_forwarded_for_counts_past_named_proxies_only(
    sender: str, forwarded: list[str], client: str
) -> None:
    headers = [(b"x-forwarded-for", said.encode()) for said in forwarded]
    request = Request({"type": "http", "client": (sender, 1), "headers": headers})
    assert Proxies(["10.0.0.0/24"]).client(request) == client
    assert Proxies().client(request) == sender


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
