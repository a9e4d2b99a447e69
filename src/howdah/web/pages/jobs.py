"""Jobs: the list by filter, newest first, and actions on the selected jobs.

The list uses keyset pagination. The query field `before` repeats: the last value is where this page
begins, the values before it are the pages on the way back. Only the first page is live; the others
do not change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from howdah import observe
from howdah.errors import BadInput
from howdah.observe import Count, Filter, Overview, Summary, TookTooLong, short_id
from howdah.observe.brief import briefs as observe_briefs
from howdah.observe.page import DEPTH
from howdah.states import State
from howdah.waits_for import WaitsFor
from howdah.web import filter_form, flash
from howdah.web.actions import Action, on_jobs, result_sentence
from howdah.web.brief import BriefText, brief_text
from howdah.web.cache import cache_of
from howdah.web.context import DashboardContext, context_of
from howdah.web.filter_form import Form, InvalidValue
from howdah.web.page import PageRoute
from howdah.web.paths import url_to
from howdah.web.redact import without_keys
from howdah.web.request_body import form_of
from howdah.web.visitor import who_of

PER_PAGE = 50
PAGES_BACK = 20  # pages that the way back remembers
TYPES_FOUND = 20  # types that a search by name matches at most


class Row(msgspec.Struct, frozen=True):
    """A job of the list, with the duration that matters in its state."""

    job: Summary
    verb: str  # waits, runs, ran, …
    time: timedelta | None
    brief: BriefText = BriefText("", "")  # its label, or its payload in short


async def load(context: DashboardContext, request: Request) -> dict[str, Any]:
    overview = await cache_of(context).overview(request)
    query = request.query_params
    form = filter_form.read(query.multi_items(), overview.at, context.settings.redact)
    find = query.get("find", "").strip()
    if find and not form.typed:
        raise await _search(context, request, find, overview)
    back = [_id(value) for value in query.getlist("before")]
    page, problem = await _page(context, form, back[-1] if back else None)
    keys = context.settings.redact
    jobs = [without_keys(job, keys) for job in page.jobs] if page is not None else []
    briefs = await _briefs(context, [job.id for job in jobs])
    now = max([overview.at, *(job.created_at for job in jobs[:1])])  # it may be newer
    return {
        "now": now,
        "live": not back and not form.invalid,
        "form": form,
        "words": filter_form.in_words(form.filter),
        "states": states(overview, form.filter),
        "types": [type.job_type for type in overview.types],
        "queues": sorted({type.queue for type in overview.types}),
        "find": find,
        "waits_for": list(WaitsFor),
        "limited": any(job.key or job.limited_by for job in jobs),
        "rows": [msgspec.structs.replace(row(job, now), brief=briefs[job.id]) for job in jobs],
        "problem": problem,
        "exhausted": page.exhausted if page is not None else False,
        "depth": DEPTH,
        "first": not back,
        "newer": back[:-1],
        "older": [*back, page.before][-PAGES_BACK:] if page and page.before else None,
        "actions": BATCH_ACTIONS,
        "destructive": DESTRUCTIVE,
    }


async def _search(
    context: DashboardContext, request: Request, find: str, overview: Overview
) -> HTTPException:
    """Redirect a search to a job, to the jobs of types, or to jobs by error."""
    names = [type.job_type for type in overview.types]
    exact = [name for name in names if name == find]
    if not exact and (id := await _job(context, find)) is not None:
        to = url_to(request, f"/jobs/{id}")
    else:
        part = [name for name in names if find.casefold() in name.casefold()]
        types = exact or part[:TYPES_FOUND]
        to = (
            url_to(request, "/jobs", job_type=types, find=find)
            if types
            else url_to(request, "/jobs", error=find)
        )
    return HTTPException(303, "found", {"location": to})


async def _job(context: DashboardContext, find: str) -> UUID | None:
    """Return the job with this id, or with this part of an id; None if there is none."""
    try:
        return UUID(find)
    except ValueError:
        matching = await short_id.find(context.store, find, within=context.within)
    # hex digits may also be words of an error
    if matching is None or not (matching.ids or matching.marked):
        return None
    return short_id.only(matching, find)


async def _briefs(context: DashboardContext, ids: list[UUID]) -> defaultdict[UUID, BriefText]:
    """Read the brief texts of jobs; empty ones if that takes too long."""
    texts: defaultdict[UUID, BriefText] = defaultdict(lambda: BriefText("", ""))
    with suppress(TookTooLong):
        read = await observe_briefs(context.store, ids, within=context.within)
        texts.update({id: brief_text(b, context.settings.redact) for id, b in read.items()})
    return texts


async def _page(
    context: DashboardContext, form: Form, before: UUID | None
) -> tuple[observe.Page | None, str | None]:
    """Query a page of jobs; or return why there is none."""
    if form.invalid:
        return None, "The filter is invalid: correct the marked fields."
    try:
        page = await observe.page(
            context.store,
            form.filter,
            before=before,
            limit=PER_PAGE,
            depth=DEPTH,
            within=context.within,
        )
    except BadInput as error:  # a queue that no type has
        return None, f"{str(error)[0].upper()}{str(error)[1:]}."
    except TookTooLong as error:
        return None, f"{str(error).capitalize()}. Use a narrower filter or a shorter time range."
    return page, None


def states(overview: Overview, wanted: Filter) -> list[tuple[State, Count | None]]:
    """Return the number of jobs in each state; None if it is not known.

    Counts are stored by type and state only.
    """
    counted = wanted == Filter(status=wanted.status, job_type=wanted.job_type, queue=wanted.queue)
    types = [
        type
        for type in overview.types
        if (not wanted.job_type or type.job_type in set(wanted.job_type))
        and (not wanted.queue or type.queue in set(wanted.queue))
    ]
    by_state = {
        State.PENDING: _sum(
            count
            for type in types
            for count in (
                *(type.waiting, type.scheduled),
                *(type.waiting_for_key, type.waiting_for_limit),
            )
        ),
        State.CLAIMED: _sum(Count(type.claimed) for type in types),
        State.RUNNING: _sum(Count(type.running) for type in types),
    }
    for state in (State.COMPLETED, State.FAILED, State.CANCELLED):
        by_state[state] = _sum(Count(type.finished.get(state, 0)) for type in types)
    return [
        (state, by_state[state] if counted and _PARTS[state].isdisjoint(overview.late) else None)
        for state in State
    ]


_PARTS = {
    State.PENDING: {"waiting", "limited", "scheduled"},
    State.CLAIMED: {"running"},
    State.RUNNING: {"running"},
    State.COMPLETED: {"finished"},
    State.FAILED: {"finished"},
    State.CANCELLED: {"finished"},
}


def _sum(counts: Iterable[Count]) -> Count:
    return sum(counts, Count())


def row(job: Summary, now: datetime) -> Row:
    """Choose the duration that matters: how long a job waits, runs or ran."""
    match job.status:
        case State.PENDING if job.run_at is not None and job.run_at > now:
            return Row(job, "due in", job.run_at - now)
        case State.PENDING:
            return Row(job, "waits", now - max(job.created_at, job.run_at or job.created_at))
        case State.CLAIMED:
            return Row(job, "held", None if job.claimed_at is None else now - job.claimed_at)
        case State.RUNNING:
            return Row(job, "runs", None if job.started_at is None else now - job.started_at)
        case _:
            ended, began = job.completed_at, job.started_at
            ran = ended - began if ended is not None and began is not None else None
            return Row(job, "ran" if ran is not None else "", ran)


BATCH_ACTIONS: list[tuple[Action, str, str | None]] = [
    (Action.REQUEUE, "Requeue", None),
    (Action.RUN_NOW, "Run now", None),
    (Action.CANCEL, "Cancel", "Cancel the selected jobs?"),
    (Action.DELETE, "Delete", "Delete the selected jobs? This cannot be undone."),
    (Action.REPRIORITISE, "Set priority", None),
]


DESTRUCTIVE = (Action.CANCEL, Action.DELETE)


async def act(request: Request) -> Response:
    """Do an action to the selected jobs."""
    fields = await form_of(request)
    form = dict(fields)
    back = f"/jobs?{form['back']}" if form.get("back") else "/jobs"
    ids = list(dict.fromkeys(_id(value) for name, value in fields if name == "id"))
    if not ids:
        return flash.redirect(request, back, "No job was selected, so nothing was changed.")
    action = action_of(form.get("action", ""))
    try:
        priority = priority_for(action, form)
    except InvalidValue as error:
        return flash.redirect(request, back, f"{error} Nothing was changed.")
    moved = await on_jobs(context_of(request), who_of(request), action, ids, priority)
    return flash.redirect(request, back, result_sentence(action, len(moved), len(ids)))


def action_of(name: str) -> Action:
    """Return the batch action with this name."""
    for action, _, _ in BATCH_ACTIONS:
        if action == name:
            return action
    raise BadInput("the action is unknown: press one of the buttons")


def priority_for(action: Action, form: dict[str, str]) -> int | None:
    """Read the priority of a form, if the action needs one; raises InvalidValue."""
    if action is not Action.REPRIORITISE:
        return None
    typed = form.get("priority", "")
    if not typed.strip():
        raise InvalidValue("Enter the new priority.")
    return filter_form.priority(typed)


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise BadInput(f"{text!r} is no job id: copy the whole id") from None


pages: list[PageRoute] = [PageRoute("/jobs", "jobs.html", load)]
actions: list[Route] = [Route("/jobs/act", act, methods=["POST"])]
