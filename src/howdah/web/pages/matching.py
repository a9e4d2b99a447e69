"""Matching: confirm an action on all jobs that match a filter, then start it.

The page says which jobs match, how many, and what will happen; only its button starts the bulk job.
The filter is narrowed to the states that the action can change, and so is the count.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from howdah.errors import BadInput
from howdah.web import bulk, filter_form, flash
from howdah.web.actions import Action
from howdah.web.context import DashboardContext, context_of
from howdah.web.filter_form import Form, InvalidValue
from howdah.web.page import PageRoute
from howdah.web.pages.jobs import BATCH_ACTIONS, DESTRUCTIVE, action_of, priority_for
from howdah.web.request_body import form_of
from howdah.web.visitor import who_of

_EFFECTS: dict[Action, str] = {
    Action.REQUEUE: "Each job goes back in line and gets one more attempt.",
    Action.RUN_NOW: "Scheduled jobs and retries join the line at once. "
    "Jobs that are in line already do not change.",
    Action.CANCEL: "Waiting jobs are cancelled at once. Running jobs are asked to stop, and "
    "their results are dropped.",
    Action.DELETE: "The jobs are deleted, with their results, errors and events. This "
    "cannot be undone.",
    Action.REPRIORITISE: "The jobs get another priority and keep their age. Higher goes first.",
}


async def load(context: DashboardContext, request: Request) -> dict[str, Any]:
    action = action_of(request.query_params.get("action", ""))
    form = _form(context, request.query_params.multi_items())
    wanted = bulk.narrowed(form.filter, action)
    return {
        "form": form,
        "action": str(action),
        "verb": next(verb for known, verb, _ in BATCH_ACTIONS if known is action),
        "wants_priority": action is Action.REPRIORITISE,
        "dangerous": action in DESTRUCTIVE,
        "words": filter_form.in_words(wanted or form.filter),
        "effect": _EFFECTS[action],
        "count": await bulk.count(context, action, form.filter),
    }


def _form(context: DashboardContext, fields: list[tuple[str, str]]) -> Form:
    form = filter_form.read(fields, datetime.now(UTC), context.settings.redact)
    if form.invalid:
        raise BadInput("the filter is invalid: " + " ".join(form.invalid.values()))
    # a relative time such as "2h" must match the same jobs when the button is pressed
    return msgspec.structs.replace(form, typed=filter_form.query_of(form.filter))


async def start(request: Request) -> Response:
    """Start the bulk job and redirect to it."""
    fields = await form_of(request)
    form = dict(fields)
    context, who = context_of(request), who_of(request)
    action = action_of(form.get("action", ""))
    wanted = bulk.narrowed(_form(context, fields).filter, action)
    if wanted is None:
        raise BadInput("no job in these states can be changed like this: choose other states")
    try:
        priority = priority_for(action, form)
    except InvalidValue as error:
        raise BadInput(str(error)) from None
    id = await bulk.start(context, who, action, wanted, priority)
    return flash.redirect(
        request, f"/jobs/{id}", "This is the bulk job. Its progress is shown here."
    )


pages: list[PageRoute] = [PageRoute("/jobs/matching", "jobs_matching.html", load, live=False)]
actions: list[Route] = [Route("/jobs/matching", start, methods=["POST"])]
