"""Failures: the errors of failed jobs and of jobs that are being retried, grouped.

The groups come from the newest failed jobs; the page says how many those were. A retry requeues all
failed jobs with the error, also older ones, as a bulk job.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from howdah import observe
from howdah.errors import BadInput
from howdah.observe import Filter
from howdah.states import State
from howdah.text.wording import jobs
from howdah.web import bulk, flash
from howdah.web.actions import Action
from howdah.web.context import DashboardContext, context_of
from howdah.web.page import PageRoute
from howdah.web.request_body import form_of
from howdah.web.visitor import who_of

SHOWN = 100  # groups


async def load(context: DashboardContext, request: Request) -> dict[str, Any]:
    job_type = request.query_params.get("type", "").strip() or None
    if job_type is not None and "\0" in job_type:
        raise BadInput("a filter cannot contain a NUL character: remove it")
    failures = await observe.failures(context.store, job_type, within=context.within)
    return {
        "failures": failures,
        "groups": failures.groups[:SHOWN],
        "hidden": max(0, len(failures.groups) - SHOWN),
        "retrying": failures.retrying[:SHOWN],
        "retrying_hidden": max(0, len(failures.retrying) - SHOWN),
        "retried_jobs": jobs(sum(group.jobs for group in failures.retrying)),
        "job_type": job_type,
        "types": sorted({group.job_type for group in (*failures.groups, *failures.retrying)}),
        "looked_at": jobs(failures.looked_at),
    }


async def retry(request: Request) -> Response:
    """Requeue all jobs of a group, and redirect to the bulk job."""
    form = dict(await form_of(request))
    job_type, fingerprint = form.get("type", ""), form.get("fingerprint", "")
    if not job_type or not fingerprint:  # one alone would match far more jobs
        raise BadInput("the group is not complete: send its type and its fingerprint")
    group = Filter(status=(State.FAILED,), job_type=(job_type,), fingerprint=fingerprint)
    id = await bulk.start(context_of(request), who_of(request), Action.REQUEUE, group, None)
    return flash.redirect(
        request, f"/jobs/{id}", "This bulk job requeues the group. Its progress is shown here."
    )


pages: list[PageRoute] = [PageRoute("/failures", "failures.html", load)]
actions: list[Route] = [Route("/failures/retry", retry, methods=["POST"])]
