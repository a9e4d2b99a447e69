"""Workers: who works here, how each is, what it runs now, and a way to ask it to leave.

Three kinds are told apart: those that beat, those that fell silent, and foreign ones,
which never beat and are known by the jobs they hold. What a worker says of itself may be anything.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from howdah import observe
from howdah.errors import BadInput
from howdah.observe import WorkerNow
from howdah.web import actions as acts
from howdah.web import flash
from howdah.web.body import form_of
from howdah.web.desk import Desk, desk_of
from howdah.web.page import Page
from howdah.web.visitor import who_of

KINDS = ("At work", "Silent", "Foreign workers")


async def look_at_all(desk: Desk, request: Request) -> dict[str, Any]:
    crew = await observe.crew(desk.store, within=desk.within)
    groups = {kind: [one for one in crew if kind_of(one) == kind] for kind in KINDS}
    working = groups["At work"]
    return {
        "groups": {kind: found for kind, found in groups.items() if found},
        "alive": len(working),
        "slots": sum(whole(one, "slots") or 0 for one in working),
        "holds": sum(one.holds for one in crew),
        "whole": whole,
        "told": told,
        "types_of": types_of,
    }


async def look_at_one(desk: Desk, request: Request) -> dict[str, Any]:
    id: str = request.path_params["worker_id"]
    crew = await observe.crew(desk.store, within=desk.within)
    one = next((one for one in crew if one.id == id), None)
    if one is None:
        raise HTTPException(404, f"there is no worker {id} here now; it may have left")
    return {
        "one": one,
        "kind": kind_of(one),
        "whole": whole,
        "told": told,
        "types_of": types_of,
    }


def kind_of(one: WorkerNow) -> str:
    if not one.beats:
        return "Foreign workers"
    return "At work" if one.alive else "Silent"


def whole(one: WorkerNow, name: str) -> int | None:
    """Return a number that a worker says of itself."""
    said = one.info.get(name)
    return said if isinstance(said, int) else None


def told(one: WorkerNow, name: str) -> str | None:
    """Return what a worker says of itself as text."""
    said = one.info.get(name)
    return str(said) if isinstance(said, str | int) else None


def types_of(one: WorkerNow) -> list[str]:
    said = one.info.get("job_types")
    return [str(name) for name in said] if isinstance(said, list) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


async def drain(request: Request) -> Response:
    """Ask a worker to end its jobs and leave."""
    said = dict(await form_of(request))
    id = said.get("worker", "")
    if not id or "\0" in id:
        raise BadInput("say which worker")
    heard = await acts.drain(desk_of(request), who_of(request), id)
    back = f"/workers/{quote(id)}" if said.get("back") == "worker" and heard else "/workers"
    words = f"{id} ends its jobs and leaves." if heard else f"{id} is not alive to hear it."
    return flash.redirect(request, back, words)


pages: list[Page] = [
    Page("/workers", "workers.html", look_at_all),
    Page("/workers/{worker_id:path}", "worker.html", look_at_one),
]
actions: list[Route] = [Route("/workers/drain", drain, methods=["POST"])]
