"""Below a prefix, all pages, links, files, streams, forms and cookies stay below it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from playwright.async_api import Browser, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from howdah import Queue
from howdah.web import AppAccess, OneTimeLink, dashboard
from howdah.web.paths import with_prefix
from tests.web.serving import served_app

PREFIX = "/tools/queue"


async def home(_: Request) -> PlainTextResponse:
    return PlainTextResponse("the application's own page")


def in_starlette(app: ASGIApp) -> ASGIApp:
    return Starlette(routes=[Route("/", home), Mount(PREFIX, app)])


def in_fastapi(app: ASGIApp) -> ASGIApp:
    outer = FastAPI()
    outer.mount(PREFIX, app)
    return outer


def in_a_mount_of_a_mount(app: ASGIApp) -> ASGIApp:
    return Starlette(routes=[Mount("/tools", Starlette(routes=[Mount("/queue", app)]))])


def behind_a_cutting_proxy(app: ASGIApp) -> ASGIApp:
    """Put a proxy before `howdah web --prefix` that removes the prefix."""
    inner = with_prefix(app, PREFIX)

    async def proxy(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["path"].startswith(PREFIX)
        await inner({**scope, "path": scope["path"].removeprefix(PREFIX) or "/"}, receive, send)

    return proxy


def behind_a_keeping_proxy(app: ASGIApp) -> ASGIApp:
    return with_prefix(app, PREFIX)


@pytest.mark.parametrize("deploy", [in_starlette, in_fastapi, behind_a_cutting_proxy])
async def test_a_browser_never_leaves_the_prefix(
    queue: Queue, browser: Browser, deploy: Callable[[ASGIApp], ASGIApp]
) -> None:
    link = OneTimeLink()
    urls: list[str] = []
    bad: list[str] = []
    async with served_app(deploy(dashboard(queue, access=link))) as url:
        page = await browser.new_page()
        page.on("request", lambda request: urls.append(request.url))
        page.on(
            "response",
            lambda answer: (
                bad.append(f"{answer.status} {answer.url}") if answer.status >= 400 else None
            ),
        )
        await page.goto(url + PREFIX + link.path)
        await expect(page).to_have_url(f"{url}{PREFIX}/")
        await expect(page.locator("#live-status.on")).to_be_visible()
        await queue.enqueue("letters")
        await page.get_by_role("link", name="letters").first.click()  # the live update added it
        await expect(page).to_have_url(f"{url}{PREFIX}/types/letters")
        await page.get_by_role("button", name="Pause letters").click()
        await expect(page.locator(".flash")).to_have_text("letters is paused.")
        for name in ("Jobs", "Failures", "Workers", "Types", "Health", "Overview"):
            await page.get_by_role("navigation").get_by_role("link", name=name).click()
            await expect(page.get_by_role("heading", level=1)).to_have_text(name)
            links = await page.eval_on_selector_all(
                "[href], [action]",
                "all => all.map((element) => new URL("
                "element.getAttribute('href') ?? element.getAttribute('action'), location).href)",
            )
            inside = re.compile(re.escape(url + PREFIX) + "(/|#|$)")
            assert [link for link in links if not inside.match(link)] == []
        cookies = await page.context.cookies(url + PREFIX)
        assert {(cookie.get("name"), cookie.get("path")) for cookie in cookies} == {
            (f"howdah_session_{url.rpartition(':')[2]}", PREFIX)
        }
        await page.close()
    assert [requested for requested in urls if not requested.startswith(url + PREFIX)] == []
    assert bad == []


@pytest.mark.parametrize(
    "deploy",
    [
        in_starlette,
        in_fastapi,
        in_a_mount_of_a_mount,
        behind_a_cutting_proxy,
        behind_a_keeping_proxy,
    ],
)
async def test_errors_and_redirects_stay_below_the_prefix(
    queue: Queue, deploy: Callable[[ASGIApp], ASGIApp]
) -> None:
    app = dashboard(
        queue, access=AppAccess(lambda request: request.headers.get("x-me")), token="x" * 32
    )
    transport = httpx.ASGITransport(deploy(app))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://localhost", headers={"x-me": "ada"}
    ) as client:
        bare = await client.get(PREFIX, follow_redirects=True)
        assert (bare.status_code, "Overview" in bare.text) == (200, True)
        missing = await client.get(f"{PREFIX}/nothing")
        assert missing.status_code == 404
        assert f'href="{PREFIX}/"' in missing.text
        assert (await client.get(f"{PREFIX}/", headers={"x-me": ""})).status_code == 401
        css = await client.get(f"{PREFIX}/static/howdah.css")
        assert (css.status_code, css.headers["cache-control"]) == (200, "no-cache")
        gone = await client.get(f"{PREFIX}/static/nothing.css")
        assert gone.status_code == 404
        assert f'href="{PREFIX}/static/howdah.css' in gone.text
        headers = {"authorization": f"Bearer {'x' * 32}", "x-me": ""}
        acted = await client.post(f"{PREFIX}/types/letters/pause", headers=headers)
        assert acted.headers["location"] == f"{PREFIX}/types/letters"
        assert f"Path={PREFIX};" in acted.headers["set-cookie"]


async def test_the_surrounding_application_is_not_affected(queue: Queue) -> None:
    app = in_starlette(dashboard(queue, access=AppAccess(lambda _: None)))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://localhost"
    ) as client:
        answer = await client.get("/")
    assert answer.text == "the application's own page"
    assert "content-security-policy" not in answer.headers


DJANGO = """
import sys
from django.conf import settings

settings.configure(
    SECRET_KEY="for the test",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=["django.contrib." + app for app in ("auth", "contenttypes", "sessions")],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "users.sqlite3"}},
)
import django
django.setup()

from django.contrib.auth import aget_user
from django.core.asgi import get_asgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path
from importlib import import_module
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from howdah import Queue
from howdah.web import AppAccess, dashboard

urlpatterns = [path("hello", lambda request: HttpResponse("hello from Django"))]
SessionStore = import_module(settings.SESSION_ENGINE).SessionStore


async def staff(request: Request) -> str | None:
    django_request = HttpRequest()
    django_request.session = SessionStore(request.cookies.get(settings.SESSION_COOKIE_NAME))
    user = await aget_user(django_request)
    return user.get_username() if user.is_active and user.is_staff else None


application = Starlette(
    routes=[
        Mount("/tools/queue", dashboard(Queue(), access=AppAccess(staff))),
        Mount("/", get_asgi_application()),
    ]
)


def session_of(user):
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    return session.session_key


if __name__ == "__main__":
    import uvicorn
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from howdah.web.serve import address, bind

    call_command("migrate", verbosity=0)
    keys = [session_of(User.objects.create_user(name, is_staff=staff))
            for name, staff in (("ada", True), ("bob", False))]
    with bind("127.0.0.1", 0) as listener:
        print(address(listener), *keys, flush=True)
        config = uvicorn.Config(application, log_level="warning", lifespan="off")
        uvicorn.Server(config).run([listener])
"""


@contextmanager
def django(folder: Path, dsn: str) -> Generator[tuple[str, str, str]]:
    """Serve a Django project with the dashboard in it; yields its address and two sessions."""
    (folder / "project.py").write_text(DJANGO)
    with subprocess.Popen(
        [sys.executable, "project.py"],
        cwd=folder,
        env={"HOWDAH_DSN": dsn, "PATH": ""},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            url, staff, other = process.stdout.readline().split()
            yield url, staff, other
        finally:
            process.kill()


def test_in_django_only_staff_users_are_admitted(tmp_path: Path, dsn: str) -> None:
    with django(tmp_path, dsn) as (url, staff, other):
        assert httpx.get(f"{url}/hello").text == "hello from Django"
        answer = httpx.get(f"{url}{PREFIX}/", cookies={"sessionid": staff})
        assert answer.status_code == 200
        assert f'href="{PREFIX}/jobs"' in answer.text
        assert httpx.get(f"{url}{PREFIX}/", cookies={"sessionid": other}).status_code == 401
        assert httpx.get(f"{url}{PREFIX}/").status_code == 401
        with httpx.stream(
            "GET", f"{url}{PREFIX}/live", params={"page": "/"}, cookies={"sessionid": staff}
        ) as stream:
            assert next(stream.iter_lines()) == "event: draw"
        csrf_token = answer.text.split('name="howdah-csrf-token" content="')[1].split('"')[0]
        acted = httpx.post(
            f"{url}{PREFIX}/types/letters/pause",
            data={"csrf_token": csrf_token},
            cookies={"sessionid": staff},
        )
        assert acted.headers["location"] == f"{PREFIX}/types/letters"
