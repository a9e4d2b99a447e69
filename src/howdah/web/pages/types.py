"""Types: what each job type does, and whether it may."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from howdah import observe
from howdah.observe import TookTooLong, TypeNow, Why
from howdah.states import State
from howdah.web import actions as acts
from howdah.web import flash
from howdah.web.body import form_of
from howdah.web.desk import Desk, desk_of
from howdah.web.page import Page
from howdah.web.pages import history
from howdah.web.recent import recent
from howdah.web.visitor import who_of

LONGEST_REASON = 500
ENDINGS = (State.COMPLETED, State.FAILED, State.CANCELLED)


async def look_at_all(desk: Desk, request: Request) -> dict[str, Any]:
    seen = await recent(desk).overview(request)
    return {"now": seen.at, "seen": seen, "types": seen.types, "endings": ENDINGS}


async def look_at_one(desk: Desk, request: Request) -> dict[str, Any]:
    job_type: str = request.path_params["job_type"]
    seen = await recent(desk).overview(request)
    one = next((one for one in seen.types if one.job_type == job_type), None)
    if one is None:
        if not seen.late:
            raise HTTPException(404, f"no job of the type {job_type} is or was here")
        one = TypeNow(job_type=job_type)  # it may be in a part that is missing
    return {
        "now": seen.at,
        "seen": seen,
        "one": one,
        "why": await _why(desk, job_type),
        "history": await history.look(desk, request, f"/types/{quote(job_type)}", job_type),
        "endings": ENDINGS,
    }


async def _why(desk: Desk, job_type: str) -> Why | None:
    try:
        return await observe.why_type(desk.store, job_type, within=desk.within)
    except TookTooLong:
        return None


async def pause(request: Request) -> Response:
    job_type: str = request.path_params["job_type"]
    said = dict(await form_of(request))
    reason = " ".join(said.get("reason", "").split())[:LONGEST_REASON]
    new = await acts.pause(desk_of(request), who_of(request), job_type, reason or None)
    told = f"{job_type} is paused." if new else f"{job_type} was paused already."
    return flash.redirect(request, _back(job_type, said), told)


async def resume(request: Request) -> Response:
    job_type: str = request.path_params["job_type"]
    said = dict(await form_of(request))
    was = await acts.resume(desk_of(request), who_of(request), job_type)
    told = f"{job_type} goes on." if was else f"{job_type} was not paused."
    return flash.redirect(request, _back(job_type, said), told)


def _back(job_type: str, said: dict[str, str]) -> str:
    return "/types" if said.get("back") == "list" else f"/types/{quote(job_type)}"


pages: list[Page] = [
    Page("/types", "types.html", look_at_all),
    Page("/types/{job_type:path}", "type.html", look_at_one),
]
actions: list[Route] = [
    Route("/types/{job_type:path}/pause", pause, methods=["POST"]),
    Route("/types/{job_type:path}/resume", resume, methods=["POST"]),
]
