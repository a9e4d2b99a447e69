"""Job: one job with its history, payload, result and events, and the actions on it.

Events of the job update the page at once, so progress moves while the page is open.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from howdah import observe, payload
from howdah.checks.signals import check_signal_name
from howdah.errors import BadInput, JobEnded, JobNotFound
from howdah.job import Job
from howdah.observe import JobHistory
from howdah.observe.raw import SHOWN_EVENTS, RawJob, raw_job
from howdah.observe.steps import steps, words_of
from howdah.states import State
from howdah.waits_for import WaitsFor
from howdah.web import actions as actions_of
from howdah.web import flash, json_tree, timeline
from howdah.web.actions import Action, on_jobs, result_sentence
from howdah.web.context import DashboardContext, context_of
from howdah.web.filter_form import InvalidValue
from howdah.web.last_frame import last_frame
from howdah.web.page import PageRoute
from howdah.web.pages.jobs import priority_for
from howdah.web.redact import hidden_key, hidden_limit, redacted
from howdah.web.request_body import form_of
from howdah.web.visitor import who_of


def id_of(request: Request) -> UUID:
    """Return the id in the path; raises JobNotFound."""
    text: str = request.path_params["id"]
    try:
        return UUID(text)
    except ValueError:
        raise JobNotFound(
            f"{text!r} is no job id. A job id looks like 01980f2e-7c1a-7d3e-9b1f-2f4e5a6b7c8d"
        ) from None


async def load(context: DashboardContext, request: Request) -> dict[str, Any]:
    id = id_of(request)
    history = await observe.job_history(context.store, id, within=context.within)
    raw = await raw_job(context.store, id, within=context.within)
    job = history.job
    why = (
        None
        if job.status.finished
        else await observe.why(context.store, id, within=context.within, key_as=context.key_as)
    )
    its_steps = await steps(context.store, id, within=context.within)
    return {
        "now": history.at,
        "history": history,
        "job": job,
        "unique_key": hidden_key(job.unique_key, context.settings.redact),
        "key": hidden_key(job.key, context.settings.redact),
        "limit": hidden_limit(job.limited_by, context.settings.redact),
        "why": why,
        "bar": timeline.bar(history.spans, history.at),
        "spans": [
            (span, timeline.describe(span), timeline.duration(span, history.at))
            for span in history.spans
        ],
        "steps": [(step, words_of(step, history.at)) for step in its_steps],
        "remaining": timeline.remaining(history),
        "data": _tree(context, raw.data),
        "result": None if raw.result is None else _tree(context, raw.result),
        "events": _events(context, history, raw),
        "events_shown": SHOWN_EVENTS,
        "fingerprint": raw.fingerprint or None,
        "frame": _frame(history),
        "can": {str(action) for action in allowed(job)},
    }


def _frame(history: JobHistory) -> str | None:
    """Return the last frame of the last error."""
    errors = [span for span in history.spans if span.error]
    return last_frame(errors[-1].traceback) if errors else None


def _tree(context: DashboardContext, raw: str, levels: int = json_tree.OPEN) -> Any:
    return json_tree.tree(redacted(json_tree.read(raw), context.settings.redact), levels)


def _events(context: DashboardContext, history: JobHistory, raw: RawJob) -> list[tuple[Any, Any]]:
    """Return the events with their data as JSON trees, newest first."""
    events: list[tuple[Any, Any]] = []
    for event in reversed(history.events):
        text = raw.events.get(event.number)
        events.append(
            (event, _tree(context, text, levels=1) if text not in (None, "null") else None)
        )
    return events


def allowed(job: Job) -> set[Action]:
    """Return the actions that the state of a job allows."""
    can = {Action.CLONE}
    if job.status.finished:
        can.add(Action.DELETE)
    else:
        can.add(Action.CANCEL)
    if job.status in (State.FAILED, State.CANCELLED):
        can.add(Action.REQUEUE)
    if job.status is State.PENDING:
        can.add(Action.REPRIORITISE)
        if job.waits_for in (WaitsFor.TIME, WaitsFor.RETRY):
            can.add(Action.RUN_NOW)
    return can


async def act(request: Request) -> Response:
    """Do an action to this job."""
    id = id_of(request)
    form = dict(await form_of(request))
    here = f"/jobs/{id}"
    try:
        action = Action(request.path_params["action"])
    except ValueError:
        raise BadInput(
            f"there is no action {request.path_params['action']!r}: use a button of the page"
        ) from None
    try:
        priority = priority_for(action, form)
    except InvalidValue as error:
        return flash.redirect(request, here, str(error))
    moved = await on_jobs(context_of(request), who_of(request), action, [id], priority)
    if not moved and action is Action.CLONE:
        raise JobNotFound.with_id(id)
    sentence = result_sentence(action, len(moved), 1)
    if action is Action.CLONE:
        return flash.redirect(request, f"/jobs/{moved[id]}", f"{sentence} This is the clone.")
    return flash.redirect(request, "/jobs" if moved and action is Action.DELETE else here, sentence)


async def send_signal(request: Request) -> Response:
    """Send a signal to this job."""
    id = id_of(request)
    form = dict(await form_of(request))
    here = f"/jobs/{id}"
    text = form.get("data", "").strip()
    try:
        data = None if not text else payload.read(text, "the data of the signal")
        name = check_signal_name(form.get("name"))
        waited = await actions_of.signal(context_of(request), who_of(request), id, name, data)
    except (BadInput, JobEnded) as error:
        return flash.redirect(request, here, f"{error}.")
    said = "The job goes on." if waited else "The job does not wait for it yet: it is kept."
    return flash.redirect(request, here, f"The signal {name} was sent. {said}")


async def as_text(request: Request) -> Response:
    """Return the whole payload or result; numbers keep all digits."""
    context, part = context_of(request), request.path_params["part"]
    raw = await raw_job(context.store, id_of(request), within=context.within)
    texts = {"data": raw.data, "result": raw.result or "null"}
    if part not in texts:
        raise HTTPException(404, "not found: a job has data.json and result.json")
    value = redacted(json_tree.read(texts[part]), context.settings.redact)
    return PlainTextResponse(json_tree.text(value) + "\n")


pages: list[PageRoute] = [PageRoute("/jobs/{id}", "job.html", load, job=id_of)]
actions: list[Route] = [
    Route("/jobs/{id}/{part}.json", as_text, methods=["GET"]),
    Route("/jobs/{id}/signal", send_signal, methods=["POST"]),
    Route("/jobs/{id}/{action}", act, methods=["POST"]),
]
