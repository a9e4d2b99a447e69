"""Jobs: the list by filter, newest first, and what can be done to the ones that are ticked.

Comes after  filter_form.py  which reads the filter from the URL
Comes before pages/matching.py  which does the same to all that match

Pages go by keyset, so the field `before` holds the whole way back: the last one is where this page
begins, the one ahead of it where the newer page began. Only the first page is live; the others
would show nothing new.
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
from howdah.observe.brief import briefs
from howdah.observe.page import DEPTH
from howdah.states import State
from howdah.web import filter_form, flash
from howdah.web.actions import Action, on_jobs, told
from howdah.web.body import form_of
from howdah.web.brief import Line, line
from howdah.web.desk import Desk, desk_of
from howdah.web.filter_form import Form, Wrong
from howdah.web.page import Page
from howdah.web.paths import outer
from howdah.web.recent import recent
from howdah.web.visitor import who_of

PER_PAGE = 50
PAGES_BACK = 20  # how many pages the way back remembers
TYPES_FOUND = 20  # types that a search by a part of their name takes


class Row(msgspec.Struct, frozen=True):
    """A job of the list, with the time that matters in its state."""

    job: Summary
    word: str  # waits, runs, ran, …
    time: timedelta | None
    line: Line = Line("", "")  # what tells it from the others


async def look(desk: Desk, request: Request) -> dict[str, Any]:
    seen = await recent(desk).overview(request)
    asked = request.query_params
    form = filter_form.read(asked.multi_items(), seen.at, desk.settings.redact)
    find = asked.get("find", "").strip()
    if find and not form.typed:
        raise await _elsewhere(desk, request, find, seen)
    way = [_id(said) for said in asked.getlist("before")]
    found, trouble = await _page(desk, form, way[-1] if way else None)
    jobs = found.jobs if found is not None else []
    lines = await _lines(desk, [job.id for job in jobs])
    now = max([seen.at, *(job.created_at for job in jobs[:1])])  # the newest may be newer
    return {
        "now": now,
        "live": not way and not form.wrong,
        "form": form,
        "words": filter_form.in_words(form.filter),
        "states": states(seen, form.filter),
        "types": [one.job_type for one in seen.types],
        "find": find,
        "rows": [msgspec.structs.replace(row(job, now), line=lines[job.id]) for job in jobs],
        "trouble": trouble,
        "exhausted": found.exhausted if found is not None else False,
        "depth": DEPTH,
        "first": not way,
        "newer": way[:-1],
        "older": [*way, found.before][-PAGES_BACK:] if found and found.before else None,
        "actions": ON_MANY,
        "destroying": DESTROYING,
    }


async def _elsewhere(desk: Desk, request: Request, find: str, seen: Overview) -> HTTPException:
    """Send a search where its words lead: to a job, to types, or to errors."""
    names = [one.job_type for one in seen.types]
    exact = [name for name in names if name == find]
    if not exact and (id := await _job(desk, find)) is not None:
        to = outer(request, f"/jobs/{id}")
    else:
        part = [name for name in names if find.casefold() in name.casefold()]
        types = exact or part[:TYPES_FOUND]
        to = (
            outer(request, "/jobs", job_type=types, find=find)
            if types
            else outer(request, "/jobs", error=find)
        )
    return HTTPException(303, "found", {"location": to})


async def _job(desk: Desk, find: str) -> UUID | None:
    """Return the job that a search means by its id, or by a part of it as the list shows it."""
    try:
        return UUID(find)
    except ValueError:
        found = await short_id.find(desk.store, find, within=desk.within)
    if found is None or not (found.ids or found.marked):  # hex digits may be a part of an error
        return None
    return short_id.only(found, find)


async def _lines(desk: Desk, ids: list[UUID]) -> defaultdict[UUID, Line]:
    """Read what tells jobs apart; nothing where that took too long."""
    lines: defaultdict[UUID, Line] = defaultdict(lambda: Line("", ""))
    with suppress(TookTooLong):
        read = await briefs(desk.store, ids, within=desk.within)
        lines.update({id: line(one, desk.settings.redact) for id, one in read.items()})
    return lines


async def _page(
    desk: Desk, form: Form, before: UUID | None
) -> tuple[observe.Page | None, str | None]:
    """Look for the jobs; or say why there is nothing to see."""
    if form.wrong:
        return None, "The filter does not fit: see the marked fields."
    try:
        found = await observe.page(
            desk.store,
            form.filter,
            before=before,
            limit=PER_PAGE,
            depth=DEPTH,
            within=desk.within,
        )
    except TookTooLong as error:
        return None, f"{str(error).capitalize()}. A narrower filter, or a shorter time, is faster."
    return found, None


def states(seen: Overview, wanted: Filter) -> list[tuple[State, Count | None]]:
    """Return how many jobs there are in each state; None where that is not known.

    Counts are kept by type and state, so a filter by anything else has none.
    """
    counted = wanted == Filter(status=wanted.status, job_type=wanted.job_type)
    types = [
        one for one in seen.types if not wanted.job_type or one.job_type in set(wanted.job_type)
    ]
    by_state = {
        State.PENDING: _sum(count for one in types for count in (one.waiting, one.scheduled)),
        State.CLAIMED: _sum(Count(one.claimed) for one in types),
        State.RUNNING: _sum(Count(one.running) for one in types),
    }
    for state in (State.COMPLETED, State.FAILED, State.CANCELLED):
        by_state[state] = _sum(Count(one.finished.get(state, 0)) for one in types)
    return [
        (state, by_state[state] if counted and _MADE_OF[state].isdisjoint(seen.late) else None)
        for state in State
    ]


_MADE_OF = {
    State.PENDING: {"waiting", "scheduled"},
    State.CLAIMED: {"running"},
    State.RUNNING: {"running"},
    State.COMPLETED: {"finished"},
    State.FAILED: {"finished"},
    State.CANCELLED: {"finished"},
}


def _sum(counts: Iterable[Count]) -> Count:
    return sum(counts, Count())


def row(job: Summary, now: datetime) -> Row:
    """Say which time of a job matters: how long it waits, ran or runs."""
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


ON_MANY: list[tuple[Action, str, str | None]] = [
    (Action.REQUEUE, "Requeue", None),
    (Action.RUN_NOW, "Run now", None),
    (Action.CANCEL, "Cancel", "Cancel the jobs that are ticked?"),
    (Action.DELETE, "Delete", "Delete the jobs that are ticked? This cannot be undone."),
    (Action.REPRIORITISE, "Set priority", None),
]


DESTROYING = (Action.CANCEL, Action.DELETE)


async def act(request: Request) -> Response:
    """Do something to the jobs that were ticked."""
    sent = await form_of(request)
    said = dict(sent)
    back = f"/jobs?{said['back']}" if said.get("back") else "/jobs"
    ids = list(dict.fromkeys(_id(value) for name, value in sent if name == "id"))
    if not ids:
        return flash.redirect(request, back, "No job was ticked, so nothing was done.")
    action = action_of(said.get("action", ""))
    try:
        priority = priority_for(action, said)
    except Wrong as error:
        return flash.redirect(request, back, f"{error} Nothing was done.")
    moved = await on_jobs(desk_of(request), who_of(request), action, ids, priority)
    return flash.redirect(request, back, told(action, len(moved), len(ids)))


def action_of(said: str) -> Action:
    """Read the action that a form names, out of those that can be done to many jobs."""
    for action, _, _ in ON_MANY:
        if action == said:
            return action
    raise BadInput("say what shall be done: press one of the buttons")


def priority_for(action: Action, said: dict[str, str]) -> int | None:
    """Read the priority that somebody typed, where the action gives one; raises Wrong."""
    if action is not Action.REPRIORITISE:
        return None
    typed = said.get("priority", "")
    if not typed.strip():
        raise Wrong("Say which priority the jobs shall have.")
    return filter_form.priority(typed)


def _id(said: str) -> UUID:
    try:
        return UUID(said)
    except ValueError:
        raise BadInput(f"{said!r} is not the id of a job") from None


pages: list[Page] = [Page("/jobs", "jobs.html", look)]
actions: list[Route] = [Route("/jobs/act", act, methods=["POST"])]
