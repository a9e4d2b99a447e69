"""Workers: the list of workers and the page of one worker, with drain.

There are three kinds: workers with a heartbeat, silent ones, and foreign workers, which send no
heartbeat and are known by the jobs they hold. The facts that a worker reports may have any type.
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
from howdah.web import actions as web_actions
from howdah.web import flash
from howdah.web.context import DashboardContext, context_of
from howdah.web.page import PageRoute
from howdah.web.request_body import form_of
from howdah.web.visitor import who_of

KINDS = ("At work", "Silent", "Foreign workers")


async def load_list(context: DashboardContext, request: Request) -> dict[str, Any]:
    workers = await observe.workers(context.store, within=context.within)
    groups = {kind: [worker for worker in workers if kind_of(worker) == kind] for kind in KINDS}
    working = groups["At work"]
    return {
        "groups": {kind: members for kind, members in groups.items() if members},
        "alive": len(working),
        "slots": sum(whole(worker, "slots") or 0 for worker in working),
        "holds": sum(worker.holds for worker in workers),
        "whole": whole,
        "reported": reported,
        "types_of": types_of,
    }


async def load_worker(context: DashboardContext, request: Request) -> dict[str, Any]:
    id: str = request.path_params["worker_id"]
    workers = await observe.workers(context.store, within=context.within)
    worker = next((known for known in workers if known.id == id), None)
    if worker is None:
        raise HTTPException(
            404, f"there is no worker {id}: it may have stopped. The page Workers lists all workers"
        )
    return {
        "worker": worker,
        "kind": kind_of(worker),
        "whole": whole,
        "reported": reported,
        "types_of": types_of,
    }


def kind_of(worker: WorkerNow) -> str:
    if not worker.beats:
        return "Foreign workers"
    return "At work" if worker.alive else "Silent"


def whole(worker: WorkerNow, name: str) -> int | None:
    """Return a number that a worker reports."""
    value = worker.info.get(name)
    return value if isinstance(value, int) else None


def reported(worker: WorkerNow, name: str) -> str | None:
    """Return a text or a number that a worker reports, as text."""
    value = worker.info.get(name)
    return str(value) if isinstance(value, str | int) else None


def types_of(worker: WorkerNow) -> list[str]:
    value = worker.info.get("job_types")
    return [str(name) for name in value] if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


async def drain(request: Request) -> Response:
    """Ask a worker to end its jobs and stop."""
    form = dict(await form_of(request))
    id = form.get("worker", "")
    if not id or "\0" in id:
        raise BadInput("no worker was named: press Drain on the page Workers")
    alive = await web_actions.drain(context_of(request), who_of(request), id)
    back = f"/workers/{quote(id)}" if form.get("back") == "worker" and alive else "/workers"
    message = f"{id} ends its jobs and stops." if alive else f"{id} is not alive."
    return flash.redirect(request, back, message)


pages: list[PageRoute] = [
    PageRoute("/workers", "workers.html", load_list),
    PageRoute("/workers/{worker_id:path}", "worker.html", load_worker),
]
actions: list[Route] = [Route("/workers/drain", drain, methods=["POST"])]
