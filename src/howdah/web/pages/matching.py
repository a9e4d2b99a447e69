"""Matching: do something to all jobs that match a filter, after a look at what that means.

Comes after  pages/jobs.py
Comes before bulk.py  which does it as a job of its own

The page says which jobs, how many, and what will happen to them; only its button starts anything.
A filter is narrowed to the states that the action can move, so the count is of those.
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
from howdah.web.body import form_of
from howdah.web.desk import Desk, desk_of
from howdah.web.filter_form import Form, Wrong
from howdah.web.page import Page
from howdah.web.pages.jobs import DESTROYING, ON_MANY, action_of, priority_for
from howdah.web.visitor import who_of

_HAPPENS: dict[Action, str] = {
    Action.REQUEUE: "Each of them goes back in line and gets one more attempt.",
    Action.RUN_NOW: "Those that wait for their time, or for a retry, join the line at once. "
    "Those that stand in line already stay where they are.",
    Action.CANCEL: "Those that wait are cancelled at once. Those that run are asked to stop, and "
    "their results are dropped.",
    Action.DELETE: "They are deleted for good, with their results, errors and events. This "
    "cannot be undone.",
    Action.REPRIORITISE: "They get another priority and keep their age: higher goes first.",
}


async def look(desk: Desk, request: Request) -> dict[str, Any]:
    action = action_of(request.query_params.get("action", ""))
    form = _form(desk, request.query_params.multi_items())
    wanted = bulk.narrowed(form.filter, action)
    return {
        "form": form,
        "action": str(action),
        "verb": next(verb for one, verb, _ in ON_MANY if one is action),
        "wants_priority": action is Action.REPRIORITISE,
        "dangerous": action in DESTROYING,
        "words": filter_form.in_words(wanted or form.filter),
        "happens": _HAPPENS[action],
        "count": await bulk.count(desk, action, form.filter),
    }


def _form(desk: Desk, fields: list[tuple[str, str]]) -> Form:
    form = filter_form.read(fields, datetime.now(UTC), desk.settings.redact)
    if form.wrong:
        raise BadInput("the filter does not fit: " + " ".join(form.wrong.values()))
    # a time such as "2h" must mean the same jobs when the button is pressed
    return msgspec.structs.replace(form, typed=filter_form.query_of(form.filter))


async def start(request: Request) -> Response:
    """Start the job that does it, and go to watch it."""
    sent = await form_of(request)
    said = dict(sent)
    desk, who = desk_of(request), who_of(request)
    action = action_of(said.get("action", ""))
    wanted = bulk.narrowed(_form(desk, sent).filter, action)
    if wanted is None:
        raise BadInput("no job in these states can be moved like this")
    try:
        priority = priority_for(action, said)
    except Wrong as error:
        raise BadInput(str(error)) from None
    id = await bulk.start(desk, who, action, wanted, priority)
    return flash.redirect(request, f"/jobs/{id}", "This job does it. Its progress is shown here.")


pages: list[Page] = [Page("/jobs/matching", "jobs_matching.html", look, live=False)]
actions: list[Route] = [Route("/jobs/matching", start, methods=["POST"])]
