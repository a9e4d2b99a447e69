"""Types: the list of job types and the page of one type, with pause and resume."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from howdah import observe
from howdah.checks.queue_names import refuse_unknown_queues
from howdah.errors import BadInput
from howdah.observe import KeyCounts, TookTooLong, TypeNow, Why
from howdah.states import State
from howdah.web import actions as web_actions
from howdah.web import flash
from howdah.web.cache import cache_of
from howdah.web.context import DashboardContext, context_of
from howdah.web.page import PageRoute
from howdah.web.pages import history
from howdah.web.redact import shown_keys
from howdah.web.request_body import form_of
from howdah.web.visitor import who_of

MAX_REASON = 500
ENDINGS = (State.COMPLETED, State.FAILED, State.CANCELLED)


async def load_list(context: DashboardContext, request: Request) -> dict[str, Any]:
    overview = await cache_of(context).overview(request)
    queues = sorted({type.queue for type in overview.types})
    wanted = request.query_params.getlist("queue")
    return {
        "now": overview.at,
        "overview": overview,
        "types": [type for type in overview.types if not wanted or type.queue in wanted],
        "queues": queues if len(queues) > 1 else [],
        "wanted": wanted,
        "problem": _unknown(wanted, queues),
        "endings": ENDINGS,
    }


def _unknown(wanted: list[str], queues: list[str]) -> str | None:
    """Say that a queue is unknown, with similar names; None if all are known."""
    try:
        refuse_unknown_queues(wanted, queues, "queue")
    except BadInput as error:
        return str(error)
    return None


async def load_type(context: DashboardContext, request: Request) -> dict[str, Any]:
    job_type: str = request.path_params["job_type"]
    overview = await cache_of(context).overview(request)
    type = next((known for known in overview.types if known.job_type == job_type), None)
    if type is None:
        if not overview.late:
            raise HTTPException(
                404, f"the type {job_type} is unknown: the page Types lists all types"
            )
        type = TypeNow(job_type=job_type)  # it may be in a part that took too long
    return {
        "now": overview.at,
        "overview": overview,
        "type": type,
        "why": await _why(context, job_type),
        "keys": await _keys(context, job_type),
        "history": await history.load(context, request, f"/types/{quote(job_type)}", job_type),
        "endings": ENDINGS,
    }


async def _why(context: DashboardContext, job_type: str) -> Why | None:
    try:
        return await observe.why_type(
            context.store, job_type, within=context.within, key_as=context.key_as
        )
    except TookTooLong:
        return None


async def _keys(context: DashboardContext, job_type: str) -> KeyCounts | None:
    """Count the jobs of the type by key; None if that takes too long."""
    try:
        counted = await observe.key_counts(context.store, job_type, within=context.within)
    except TookTooLong:
        return None
    return shown_keys(counted, context.settings.redact)


async def pause(request: Request) -> Response:
    job_type: str = request.path_params["job_type"]
    form = dict(await form_of(request))
    reason = " ".join(form.get("reason", "").split())[:MAX_REASON]
    changed = await web_actions.pause(
        context_of(request), who_of(request), job_type, reason or None
    )
    message = f"{job_type} is paused." if changed else f"{job_type} was paused already."
    return flash.redirect(request, _back(job_type, form), message)


async def resume(request: Request) -> Response:
    job_type: str = request.path_params["job_type"]
    form = dict(await form_of(request))
    changed = await web_actions.resume(context_of(request), who_of(request), job_type)
    message = f"{job_type} is resumed." if changed else f"{job_type} was not paused."
    return flash.redirect(request, _back(job_type, form), message)


def _back(job_type: str, form: dict[str, str]) -> str:
    return "/types" if form.get("back") == "list" else f"/types/{quote(job_type)}"


pages: list[PageRoute] = [
    PageRoute("/types", "types.html", load_list),
    PageRoute("/types/{job_type:path}", "type.html", load_type),
]
actions: list[Route] = [
    Route("/types/{job_type:path}/pause", pause, methods=["POST"]),
    Route("/types/{job_type:path}/resume", resume, methods=["POST"]),
]
