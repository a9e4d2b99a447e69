"""Schedules: what fires when, what became of the last firing, and pause, resume and run now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from howdah.checks.schedule_names import check_schedule_name
from howdah.observe import Schedule
from howdah.text.wording import fires
from howdah.web import actions as web_actions
from howdah.web import flash
from howdah.web.cache import cache_of
from howdah.web.context import DashboardContext, context_of
from howdah.web.page import PageRoute
from howdah.web.request_body import form_of
from howdah.web.visitor import who_of

MAX_LISTED = 200

Act = Callable[[DashboardContext, str, str], Awaitable[bool]]


async def load_list(context: DashboardContext, request: Request) -> dict[str, Any]:
    found = await cache_of(context).schedules(request)
    return {"now": found.at, "found": found.schedules, "most": MAX_LISTED, "fires_of": fires_of}


def fires_of(schedule: Schedule) -> str:
    return fires(schedule.cron, schedule.every, schedule.tz)


async def pause(request: Request) -> Response:
    return await _act(request, web_actions.pause_schedule, "is paused.", "was paused already.")


async def resume(request: Request) -> Response:
    return await _act(
        request,
        web_actions.resume_schedule,
        "fires again.",
        "was not paused; its next firing is computed anew.",
    )


async def _act(request: Request, act: Act, done: str, unchanged: str) -> Response:
    name = await _name(request)
    changed = await act(context_of(request), who_of(request), name)
    message = f"The schedule {name} {done if changed else unchanged}"
    return flash.redirect(request, "/schedules", message)


async def run_now(request: Request) -> Response:
    name = await _name(request)
    id = await web_actions.run_schedule_now(context_of(request), who_of(request), name)
    return flash.redirect(request, f"/jobs/{id}", f"The schedule {name} has enqueued this job.")


async def _name(request: Request) -> str:
    return check_schedule_name(dict(await form_of(request)).get("schedule", ""))


pages: list[PageRoute] = [PageRoute("/schedules", "schedules.html", load_list)]
actions: list[Route] = [
    Route("/schedules/pause", pause, methods=["POST"]),
    Route("/schedules/resume", resume, methods=["POST"]),
    Route("/schedules/run-now", run_now, methods=["POST"]),
]
