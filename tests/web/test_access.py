"""Access: one-time links, session cookies, passwords, trusted headers, and their throttle."""

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
from howdah.web import AppAccess, OneTimeLink, Password, TrustedHeader, dashboard
from howdah.web.access import Access, Sessions
from howdah.web.access.client import Proxies, address_of
from howdah.web.access.revoked import Revoked
from howdah.web.access.session import COOKIE, LIFETIME
from howdah.web.access.throttle import (
    FORGET_AFTER,
    MAX_REMEMBERED,
    MAX_WAIT,
    MAX_WAITING,
    ONE_EACH_FROM,
    Throttle,
)
from tests.web.axe import axe_finds_nothing
from tests.web.serving import served

SECRET = "a secret of thirty-two characters or more"
WORDS = "correct horse"


@asynccontextmanager
async def client_of(
    queue: Queue, access: Access, address: str = "127.0.0.1", **options: Any
) -> AsyncGenerator[httpx.AsyncClient]:
    """Yield an HTTP client of a dashboard with this client address."""
    app = options.pop("app", None) or dashboard(queue, access=access, secret=SECRET, **options)
    transport = httpx.ASGITransport(app, client=(address, 4711))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


async def is_admitted(client: httpx.AsyncClient, **headers: str) -> bool:
    return (await client.get("/", headers=headers)).status_code == 200


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


# ── the one-time link ──


async def test_the_link_works_once(queue: Queue) -> None:
    link = OneTimeLink()
    path = link.path
    async with client_of(queue, link) as first, client_of(queue, link) as second:
        assert (await first.head(path)).status_code == 200  # HEAD does not use it up
        answer = await first.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert await is_admitted(first)
        again = await second.get(path)
        assert again.status_code == 410
        assert "This link was already used" in again.text
        assert "start it again" in again.text
        assert not again.cookies
        assert not await is_admitted(second)


async def test_a_used_link_redirects_a_visitor_who_is_logged_in(queue: Queue) -> None:
    link = OneTimeLink()
    path = link.path
    async with client_of(queue, link) as client:
        await client.get(path)
        again = await client.get(path)
        assert (again.status_code, again.headers["location"]) == (303, "/")
        assert "set-cookie" not in again.headers
        assert await is_admitted(client)
        client.cookies.clear()
        assert (await client.get(path)).status_code == 410


@pytest.mark.parametrize("guess", ["", "?token=", "?token=None", "?token=%C3%A4", "?token=x"])
async def test_a_guessed_link_opens_nothing(queue: Queue, guess: str) -> None:
    link = OneTimeLink()
    async with client_of(queue, link) as client:
        assert (await client.get(f"/link{guess}")).status_code == 403
        await client.get(link.path)
        client.cookies.clear()
        assert (await client.get(f"/link{guess}")).status_code == 403  # also after it was used


# ── the cookie ──


async def log_in(queue: Queue, **options: Any) -> str:
    """Log in by a one-time link; returns the cookie header."""
    link = OneTimeLink()
    async with client_of(queue, link, **options) as client:
        return (await client.get(link.path)).headers["set-cookie"]


async def test_the_cookie_is_limited_to_this_dashboard_and_hidden_from_scripts(
    queue: Queue,
) -> None:
    cookie = await log_in(queue)
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Path=/;" in cookie
    assert f"Max-Age={int(LIFETIME.total_seconds())}" in cookie
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
async def test_over_https_the_cookie_is_secure(
    queue: Queue, scheme: str, forwarded: str | None, secure: bool
) -> None:
    link = OneTimeLink()
    headers = {} if forwarded is None else {"x-forwarded-proto": forwarded}
    async with client_of(queue, link) as client:
        answer = await client.get(f"{scheme}://localhost{link.path}", headers=headers)
    assert ("Secure" in answer.headers["set-cookie"]) is secure


def signed(
    secret: str,
    who: object = ("local", "a session"),
    salt: str = "howdah.web.session",
    age: float = 0,
    bound_to: str = "",
) -> str:
    class Earlier(TimestampSigner):
        def get_timestamp(self) -> int:
            return super().get_timestamp() - int(age)

    key = hmac.new(secret.encode(), f"session:{bound_to}".encode(), hashlib.sha256).hexdigest()
    return URLSafeTimedSerializer(key, salt=salt, signer=Earlier).dumps(who)


async def test_a_cookie_with_a_wrong_signature_is_refused(queue: Queue) -> None:
    good = signed(SECRET)
    other = signed(SECRET, who=("admin", "a session"))
    last = LIFETIME.total_seconds()
    forged = {
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
    async with client_of(queue, OneTimeLink()) as client:

        async def is_accepted(cookie: str) -> bool:
            return await is_admitted(client, cookie=f"{COOKIE}={cookie}")

        assert await is_accepted(good)
        assert await is_accepted(signed(SECRET, age=last - 60))
        assert [name for name, cookie in forged.items() if await is_accepted(cookie)] == []


async def test_two_dashboards_of_one_machine_keep_their_visitors(queue: Queue) -> None:
    first, second = OneTimeLink(), OneTimeLink()
    apps = {
        "http://localhost:1": dashboard(queue, access=first),
        "http://localhost:2": dashboard(queue, access=second),
    }
    mounts = {url: httpx.ASGITransport(app) for url, app in apps.items()}
    async with httpx.AsyncClient(mounts=mounts) as client:
        await client.get(f"http://localhost:1{first.path}")
        await client.get(f"http://localhost:2{second.path}")
        for url in apps:
            assert (await client.get(f"{url}/")).status_code == 200


def test_a_secret_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(BadInput, match="at least 32 characters"):
        Sessions("short")


async def test_a_copied_cookie_ends_when_its_session_logs_out(queue: Queue) -> None:
    app = dashboard(queue, access=Password(WORDS), secret=SECRET)
    form = {"user": "admin", "password": WORDS}
    async with (
        client_of(queue, OneTimeLink(), app=app) as first,
        client_of(queue, OneTimeLink(), app=app) as second,
    ):
        await first.post("/login", data=form)
        await second.post("/login", data=form)
        copied = f"{COOKIE}={first.cookies[COOKIE]}"
        assert first.cookies[COOKIE] != second.cookies[COOKIE]
        assert (await first.post("/logout")).status_code == 303
        assert not await is_admitted(first)
        assert not await is_admitted(first, cookie=copied)
        assert await is_admitted(second)  # the same name, another session


async def test_a_cookie_is_refused_after_a_change_of_password(queue: Queue) -> None:
    form = {"user": "admin", "password": WORDS}
    async with client_of(queue, Password(WORDS)) as before:
        await before.post("/login", data=form)
        cookie = f"{COOKIE}={before.cookies[COOKIE]}"
    for access, holds in (
        (Password(WORDS), True),  # another process with the same secret, or a restart
        (Password("another horse"), False),
        (Password(WORDS, "ada"), False),
        (OneTimeLink(), False),
    ):
        async with client_of(queue, access) as after:
            assert await is_admitted(after, cookie=cookie) is holds


def test_revoked_sessions_are_forgotten_when_their_cookies_have_expired() -> None:
    now = 0.0
    revoked = Revoked(100.0, lambda: now)
    for n in range(10):
        revoked.add(str(n))
        now += 20.0
    assert ("9" in revoked, "0" in revoked) == (True, False)
    assert len(revoked) <= 6


# ── the password ──


async def test_a_browser_can_log_in_by_password_and_log_out(queue: Queue, browser: Any) -> None:
    async with served(queue, access=Password(WORDS, "ada")) as web:
        page: Page = await browser.new_page()
        await page.goto(web.url + "/jobs")
        await expect(page).to_have_title("Log in · howdah")
        await axe_finds_nothing(page)
        await page.get_by_label("Password").fill("wrong horse")
        await page.get_by_role("button", name="Log in").click()
        await expect(page.get_by_role("alert")).to_be_visible()
        await page.get_by_label("Password").fill(WORDS)
        await page.get_by_role("button", name="Log in").click()
        await expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
        await page.get_by_role("button", name="Log out").click()
        await expect(page).to_have_title("Log in · howdah")
        await page.goto(web.url + "/jobs")
        await expect(page).to_have_title("Log in · howdah")
        await page.close()


@pytest.mark.parametrize(
    ("header", "admitted"),
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
    queue: Queue, header: str, admitted: bool
) -> None:
    async with client_of(queue, Password(WORDS)) as client:
        answer = await client.get(
            "/metrics", headers=[(b"authorization", header.encode("latin-1"))]
        )
    assert answer.status_code == (200 if admitted else 401)


class FakeClock:
    """A clock that the test sets, and a sleep that records its length."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0)

    @property
    def throttle(self) -> Throttle:
        return Throttle(lambda: self.now, self.sleep)


async def test_wrong_passwords_lock_no_user_out(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock()
    app = dashboard(queue, access=Password(WORDS, throttle=clock.throttle), secret=SECRET)
    async with (
        client_of(queue, OneTimeLink(), "10.0.0.1", app=app) as logged_in,
        client_of(queue, OneTimeLink(), "10.0.0.1", app=app) as attacker,
        client_of(queue, OneTimeLink(), "10.0.0.1", app=app) as owner,
        client_of(queue, OneTimeLink(), "10.0.0.2", app=app) as other_address,
    ):
        form = {"user": "admin", "password": WORDS}
        assert (await logged_in.post("/login", data=form)).status_code == 303
        for _ in range(100):
            assert not await is_admitted(attacker, authorization=basic("admin", "guess"))
        clock.waits.clear()
        assert await is_admitted(logged_in)
        assert clock.waits == []  # a session is admitted without a delay
        assert (await owner.post("/login", data=form)).status_code == 303
        assert await is_admitted(attacker, authorization=basic("admin", WORDS))
        assert clock.waits == [MAX_WAIT] * 2  # the right password, after a bounded wait
        assert (await other_address.post("/login", data=form)).status_code == 303
        assert clock.waits[2] < MAX_WAIT
        clock.now += FORGET_AFTER
        clock.waits.clear()
        assert (await owner.post("/login", data=form)).status_code == 303
        assert clock.waits == []
    assert caplog.messages.count('web.refused from="10.0.0.1"') == 100


async def test_behind_a_named_proxy_each_client_has_its_own_count(queue: Queue) -> None:
    clock = FakeClock()
    access = Password(WORDS, throttle=clock.throttle)
    app = dashboard(queue, access=access, secret=SECRET, proxies=["10.0.0.0/24"])
    async with client_of(queue, access, "10.0.0.1", app=app) as client:

        async def wait_of(password: str, forwarded: str) -> float:
            clock.waits.clear()
            headers = {"authorization": basic("admin", password), "x-forwarded-for": forwarded}
            await is_admitted(client, **headers)
            return clock.waits[0] if clock.waits else 0.0

        for _ in range(10):
            await wait_of("guess", "203.0.113.7")
        assert await wait_of("guess", "203.0.113.7") == MAX_WAIT
        assert await wait_of("guess", "192.0.2.1, 203.0.113.7, 10.0.0.9") == MAX_WAIT
        assert await wait_of(WORDS, "203.0.113.8") == 0.0
        assert await wait_of(WORDS, "203.0.113.7, 203.0.113.8") == 0.0


async def test_concurrent_attempts_wait_as_long_as_sequential_ones(queue: Queue) -> None:
    clock = FakeClock()
    async with client_of(queue, Password(WORDS, throttle=clock.throttle)) as client:

        async def attempt(password: str) -> int:
            form = {"user": "admin", "password": password}
            return (await client.post("/login", data=form)).status_code

        # each attempt counts from its start, so only the first is free
        assert await asyncio.gather(*(attempt("guess") for _ in range(10))) == [403] * 10
        assert await attempt(WORDS) == 303
        assert await attempt(WORDS) == 303
    before = [*range(10), 10, 10]  # earlier wrong attempts; a right one is not counted
    assert clock.waits == [min(0.1 * 2**n, MAX_WAIT) for n in before if n]


async def test_a_wrong_token_is_delayed_and_the_right_one_is_not(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock()
    monkeypatch.setattr("howdah.web.app.Throttle", lambda: clock.throttle)
    token = "t" * 32
    async with client_of(queue, OneTimeLink(), token=token) as client:
        for _ in range(10):
            assert not await is_admitted(client, authorization="Bearer guess")
        assert clock.waits == [min(0.1 * 2**n, MAX_WAIT) for n in range(1, 10)]
        assert await is_admitted(client, authorization=f"Bearer {token}")
        assert not await is_admitted(client)
        assert len(clock.waits) == 9
    assert caplog.messages.count('web.refused from="127.0.0.1"') == 10


async def test_a_token_of_the_application_is_not_counted_as_a_guess(queue: Queue) -> None:
    access = AppAccess(lambda request: "ada" if "authorization" in request.headers else None)
    async with client_of(queue, access, token="t" * 32) as client:
        for _ in range(3):
            assert await is_admitted(client, authorization="Bearer of the application")


def test_user_and_password_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
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
    asyncio.run(access.who(Request(scope), Sessions()))
    assert compared == [(b"nobody", b"admin"), (b"guess", WORDS.encode())]


@pytest.mark.parametrize("password", ["", "short"])
def test_a_short_password_is_refused(password: str) -> None:
    with pytest.raises(BadInput, match="at least 8 characters"):
        Password(password)


# ── the throttle ──


def test_the_throttle_forgets_and_does_not_grow_for_ever() -> None:
    clock = FakeClock()
    throttle = clock.throttle
    for n in range(MAX_REMEMBERED + 50):
        throttle.count(str(n))
        clock.now += 1.0
    assert throttle.wait("0") == throttle.wait("new")  # the oldest was removed
    assert throttle.wait(str(MAX_REMEMBERED + 49)) > 0.0
    clock.now += FORGET_AFTER
    assert throttle.wait(str(MAX_REMEMBERED + 49)) == 0.0


async def test_a_right_password_removes_only_its_own_attempt() -> None:
    clock = FakeClock()
    throttle = clock.throttle
    for _ in range(3):
        throttle.count("here")
        clock.now += 1.0
    async with throttle.attempt("here") as attempt:
        assert throttle.wait("here") == 1.6
        attempt.succeeded = True
    assert throttle.wait("here") == 0.8


def test_guesses_from_many_addresses_slow_each_other_down() -> None:
    throttle = FakeClock().throttle
    waits: list[float] = []
    for n in range(200):
        waits.append(throttle.wait(f"10.0.0.{n}"))
        throttle.count(f"10.0.0.{n}")
    assert waits[:20] == [0.0] * 20
    assert waits[20] == 0.2
    assert waits[-1] == MAX_WAIT


async def test_the_number_of_waiting_attempts_is_bounded_and_shared() -> None:
    held = asyncio.Event()
    throttle = Throttle(lambda: 0.0, lambda _: held.wait())
    for _ in range(20):
        throttle.count("earlier")

    refusals: set[tuple[int, str]] = set()

    async def attempt(client: str) -> bool:
        try:
            async with throttle.attempt(client):
                return True
        except HTTPException as refused:
            refusals.add((refused.status_code, str(refused.headers)))
            return False

    async with asyncio.TaskGroup() as group:
        flood = [group.create_task(attempt("flood")) for _ in range(MAX_WAITING)]
        await asyncio.sleep(0)
        assert sum(task.done() for task in flood) == MAX_WAITING - ONE_EACH_FROM
        others = [group.create_task(attempt(f"one of {n}")) for n in range(MAX_WAITING)]
        await asyncio.sleep(0)
        assert sum(task.done() for task in others) == ONE_EACH_FROM
        held.set()
    assert sum(task.result() for task in flood + others) == MAX_WAITING
    assert refusals == {(429, "{'Retry-After': '10'}")}
    assert await attempt("flood")  # all have left


# ── the client address ──


@pytest.mark.parametrize(
    ("sender", "forwarded", "client"),
    [
        ("203.0.113.1", ["198.51.100.1"], "203.0.113.1"),  # any client can send the header
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("::ffff:10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["192.0.2.9, 198.51.100.1"], "198.51.100.1"),  # the left address may be forged
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
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
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
def test_all_addresses_of_a_machine_count_as_one(host: str | None, address: str) -> None:
    scope: dict[str, Any] = {"type": "http", "client": None if host is None else (host, 1)}
    assert address_of(Request(scope)) == address


# ── the trusted header ──


@pytest.mark.parametrize(
    ("address", "admitted"),
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
    queue: Queue, address: str, admitted: bool
) -> None:
    access = TrustedHeader("X-User", ["10.0.0.7", "192.168.0.0/16"])
    async with client_of(queue, access, address) as client:
        assert await is_admitted(client, **{"x-user": "ada"}) is admitted
        assert not await is_admitted(client)
        assert not await is_admitted(client, **{"x-user": " "})
        twice = [("x-user", "admin"), ("x-user", "ada")]
        assert (await client.get("/", headers=twice)).status_code == 401


def test_a_header_without_a_proxy_is_refused() -> None:
    with pytest.raises(BadInput, match="name the addresses of the proxy"):
        TrustedHeader("X-User", [])
    with pytest.raises(BadInput, match="an address such as"):
        TrustedHeader("X-User", ["the-proxy"])


# ── the access of the application ──


def by_header(request: Request) -> str | None:
    return request.headers.get("x-me")


async def by_header_async(request: Request) -> str | None:
    await asyncio.sleep(0)
    return request.headers.get("x-me")


@pytest.mark.parametrize("identify", [by_header, by_header_async])
async def test_the_applications_own_function_decides(
    queue: Queue, identify: Callable[[Request], Any], caplog: pytest.LogCaptureFixture
) -> None:
    async with client_of(queue, AppAccess(identify)) as client:
        assert await is_admitted(client, **{"x-me": "ada"})
        assert not await is_admitted(client)
        assert not await is_admitted(client, **{"x-me": ""})


async def test_a_login_is_logged_with_its_user(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "howdah.web"):
        await log_in(queue)
    assert 'web.logged_in who="local" from="127.0.0.1"' in caplog.messages
