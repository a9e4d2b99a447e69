"""Failures: the same errors together, of jobs that failed and of jobs that are being retried.

The groups are made of the newest failed jobs, and the page says how many those were. A retry takes
all failed jobs with the error, also those that were not looked at: as a job with its own progress.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from howdah import observe
from howdah.errors import BadInput
from howdah.observe import Filter
from howdah.observe.wording import jobs
from howdah.states import State
from howdah.web import bulk, flash
from howdah.web.actions import Action
from howdah.web.body import form_of
from howdah.web.desk import Desk, desk_of
from howdah.web.page import Page
from howdah.web.visitor import who_of

SHOWN = 100  # groups


async def look(desk: Desk, request: Request) -> dict[str, Any]:
    job_type = request.query_params.get("type", "").strip() or None
    if job_type is not None and "\0" in job_type:
        raise BadInput("a filter cannot contain a NUL character")
    seen = await observe.failures(desk.store, job_type, within=desk.within)
    return {
        "seen": seen,
        "groups": seen.groups[:SHOWN],
        "hidden": max(0, len(seen.groups) - SHOWN),
        "retrying": seen.retrying[:SHOWN],
        "retrying_hidden": max(0, len(seen.retrying) - SHOWN),
        "retried_jobs": jobs(sum(group.jobs for group in seen.retrying)),
        "job_type": job_type,
        "types": sorted({group.job_type for group in (*seen.groups, *seen.retrying)}),
        "looked_at": jobs(seen.looked_at),
    }


async def retry(request: Request) -> Response:
    """Put all jobs of a group back in line, and go to watch it."""
    said = dict(await form_of(request))
    job_type, fingerprint = said.get("type", ""), said.get("fingerprint", "")
    if not job_type or not fingerprint:  # half of it would mean far more jobs than were meant
        raise BadInput("say which group: its type, and what its errors have in common")
    group = Filter(status=(State.FAILED,), job_type=(job_type,), fingerprint=fingerprint)
    id = await bulk.start(desk_of(request), who_of(request), Action.REQUEUE, group, None)
    return flash.redirect(
        request, f"/jobs/{id}", "This job puts the group back in line; here is how far it is."
    )


pages: list[Page] = [Page("/failures", "failures.html", look)]
actions: list[Route] = [Route("/failures/retry", retry, methods=["POST"])]
