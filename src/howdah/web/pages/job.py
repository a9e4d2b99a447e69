"""Job: one life, from its enqueueing to its end, and what can be done about it.

Comes after  timeline.py, json_tree.py

News of the job draws the page again at once, so progress and events move while somebody looks.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from howdah import observe
from howdah.errors import BadInput, JobNotFound
from howdah.job import Job
from howdah.observe import Life
from howdah.observe.exact import Exact, exact
from howdah.observe.history import EVENTS
from howdah.states import State
from howdah.web import flash, json_tree, timeline
from howdah.web.actions import Action, on_jobs, told
from howdah.web.body import form_of
from howdah.web.desk import Desk, desk_of
from howdah.web.filter_form import Wrong
from howdah.web.last_frame import last_frame
from howdah.web.page import Page
from howdah.web.pages.jobs import priority_for
from howdah.web.redact import redacted
from howdah.web.visitor import who_of


def id_of(request: Request) -> UUID:
    """Return the id in the path; raises JobNotFound."""
    said: str = request.path_params["id"]
    try:
        return UUID(said)
    except ValueError:
        raise JobNotFound(
            f"{said!r} is not the id of a job. Ids look like 01980f2e-7c1a-7d3e-9b1f-2f4e5a6b7c8d"
        ) from None


async def look(desk: Desk, request: Request) -> dict[str, Any]:
    id = id_of(request)
    life = await observe.life(desk.store, id, within=desk.within)
    written = await exact(desk.store, id, within=desk.within)
    job = life.job
    why = None if job.status.finished else await observe.why(desk.store, id, within=desk.within)
    return {
        "now": life.at,
        "life": life,
        "job": job,
        "why": why,
        "bar": timeline.bar(life.spans, life.at),
        "spans": [
            (span, timeline.words(span), timeline.lasted(span, life.at)) for span in life.spans
        ],
        "left": timeline.left(life),
        "data": _tree(desk, written.data),
        "result": None if written.result is None else _tree(desk, written.result),
        "events": _events(desk, life, written),
        "events_shown": EVENTS,
        "fingerprint": written.fingerprint or None,
        "frame": _frame(life),
        "can": {str(action) for action in allowed(job, in_line=life.ready_at is not None)},
    }


def _frame(life: Life) -> str | None:
    """Return where the last error was raised."""
    errors = [span for span in life.spans if span.error]
    return last_frame(errors[-1].traceback) if errors else None


def _tree(desk: Desk, written: str, levels: int = json_tree.OPEN) -> Any:
    return json_tree.tree(redacted(json_tree.read(written), desk.settings.redact), levels)


def _events(desk: Desk, life: Life, written: Exact) -> list[tuple[Any, Any]]:
    """Return the events with their data as JSON, newest first."""
    found: list[tuple[Any, Any]] = []
    for event in reversed(life.events):
        text = written.events.get(event.number)
        found.append((event, _tree(desk, text, levels=1) if text not in (None, "null") else None))
    return found


def allowed(job: Job, *, in_line: bool) -> set[Action]:
    """Say what can be done to a job in its state."""
    can = {Action.CLONE}
    if job.status.finished:
        can.add(Action.DELETE)
    else:
        can.add(Action.CANCEL)
    if job.status in (State.FAILED, State.CANCELLED):
        can.add(Action.REQUEUE)
    if job.status is State.PENDING:
        can.add(Action.REPRIORITISE)
        if not in_line:
            can.add(Action.RUN_NOW)
    return can


async def act(request: Request) -> Response:
    """Do something to this job."""
    id = id_of(request)
    said = dict(await form_of(request))
    here = f"/jobs/{id}"
    try:
        action = Action(request.path_params["action"])
    except ValueError:
        raise BadInput(f"nothing is called {request.path_params['action']!r} here") from None
    try:
        priority = priority_for(action, said)
    except Wrong as error:
        return flash.redirect(request, here, str(error))
    moved = await on_jobs(desk_of(request), who_of(request), action, [id], priority)
    if not moved and action is Action.CLONE:
        raise JobNotFound(f"there is no job {id}: never committed, or pruned after its retention")
    sentence = told(action, len(moved), 1)
    if action is Action.CLONE:
        return flash.redirect(request, f"/jobs/{moved[id]}", f"{sentence} This is the clone.")
    return flash.redirect(request, "/jobs" if moved and action is Action.DELETE else here, sentence)


async def as_text(request: Request) -> Response:
    """Answer with the whole payload or result, every number as it was written."""
    desk, part = desk_of(request), request.path_params["part"]
    written = await exact(desk.store, id_of(request), within=desk.within)
    texts = {"data": written.data, "result": written.result or "null"}
    if part not in texts:
        raise HTTPException(404, "a job has data.json and result.json")
    value = redacted(json_tree.read(texts[part]), desk.settings.redact)
    return PlainTextResponse(json_tree.text(value) + "\n")


pages: list[Page] = [Page("/jobs/{id}", "job.html", look, job=id_of)]
actions: list[Route] = [
    Route("/jobs/{id}/{part}.json", as_text, methods=["GET"]),
    Route("/jobs/{id}/{action}", act, methods=["POST"]),
]
