"""Limits: the named limits and the rules of types, the page of one limit, and changes to both.

An empty field of a form means: any number. The fields of a form are set as a whole.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from howdah.admit import KeyRule, Rate, check_limit_name, key_rule, named_limit
from howdah.checks.durations import parse_length
from howdah.errors import BadInput
from howdah.observe import NamedLimit, TypeRule
from howdah.text.reasons import shown
from howdah.text.wording import typed_length
from howdah.web import actions as web_actions
from howdah.web import flash
from howdah.web.cache import cache_of
from howdah.web.context import DashboardContext, context_of
from howdah.web.page import PageRoute
from howdah.web.pages import history
from howdah.web.request_body import form_of
from howdah.web.visitor import who_of

MAX_LISTED = 200  # limits, and rules
MANY_DIGITS = 20


async def load_list(context: DashboardContext, request: Request) -> dict[str, Any]:
    found = await cache_of(context).limits(request)
    job_type = request.query_params.get("type", "")
    return {
        "now": found.at,
        "found": found,
        "most": MAX_LISTED,
        "job_type": job_type,
        "rule": next((rule for rule in found.rules if rule.job_type == job_type), None),
        "rate_of": rate_of,
        "slots_of": slots_of,
    }


async def load_limit(context: DashboardContext, request: Request) -> dict[str, Any]:
    name: str = request.path_params["limit_name"]
    found = await cache_of(context).limits(request)
    limit = found.limit(name)
    return {
        "now": found.at,
        "found": found,
        "limit": limit,
        "rules": [rule for rule in found.rules if rule.limit == name],
        "history": await history.load_limit(context, request, _path(name), limit),
        "rate_of": rate_of,
        "slots_of": slots_of,
    }


def rate_of(limit: NamedLimit) -> str | None:
    """Write a rate: `100 per 1m, burst 10`."""
    if limit.rate is None or limit.per is None:
        return None
    return f"{limit.rate:,} per {typed_length(limit.per)}, burst {limit.burst:,}"


def slots_of(rule: TypeRule) -> str:
    """Write what a rule allows per key."""
    if rule.ordered:
        return "one after the other"
    if rule.fair:
        return f"fair, {rule.at_once:,} in line"
    return "any number" if rule.at_once is None else f"{rule.at_once:,} at once"


async def set_limit(request: Request) -> Response:
    form = dict(await form_of(request))
    limit = named_limit(
        form.get("limit", "").strip(), _whole(form, "at_once"), _rate(form), "per_key" in form
    )
    await web_actions.set_limit(context_of(request), who_of(request), limit)
    return flash.redirect(request, _path(limit.name), f"The limit {limit.name} is set.")


async def remove_limit(request: Request) -> Response:
    name = dict(await form_of(request)).get("limit", "")
    await web_actions.remove_limit(context_of(request), who_of(request), check_limit_name(name))
    return flash.redirect(request, "/limits", f"The limit {name} is removed.")


async def set_type_limit(request: Request) -> Response:
    form = dict(await form_of(request))
    job_type = form.get("type", "").strip()
    await web_actions.set_type_limit(context_of(request), who_of(request), job_type, _rule(form))
    return flash.redirect(request, "/limits", f"The rule of {job_type} is set.")


async def clear_type_limit(request: Request) -> Response:
    job_type = dict(await form_of(request)).get("type", "")
    if not job_type or "\0" in job_type:
        raise BadInput("no type was named: press Remove on the page Limits")
    changed = await web_actions.clear_type_limit(context_of(request), who_of(request), job_type)
    message = (
        f"The rule of {job_type} is removed: a key has one slot."
        if changed
        else f"{job_type} has no rule."
    )
    return flash.redirect(request, "/limits", message)


def _rule(form: dict[str, str]) -> KeyRule:
    return key_rule(
        at_once=_whole(form, "at_once"),
        ordered="ordered" in form,
        fair="fair" in form,
        limit=form.get("limit") or None,
    )


def _rate(form: dict[str, str]) -> Rate | None:
    count, burst = _whole(form, "rate"), _whole(form, "burst")
    text = form.get("per", "").strip()
    if count is None:
        if burst is not None:
            raise BadInput("burst needs a rate: fill in both, or leave both empty")
        return None
    try:
        per = parse_length(text or "1s")
    except OverflowError:
        per = None
    if per is None:
        raise BadInput(f"per is {shown(text)}: write a number and a unit, such as 1s, 1m or 1h")
    return Rate(count, per=per, burst=burst)


def _whole(form: dict[str, str], name: str) -> int | None:
    """Read a whole number; None if the field is empty."""
    text = form.get(name, "").strip().replace(",", "")
    if not text:
        return None
    if not (text.isascii() and text.lstrip("-").isdigit() and len(text) <= MANY_DIGITS):
        raise BadInput(f"{name} is {shown(text)}: write a whole number, or leave it empty")
    return int(text)


def _path(name: str) -> str:
    return f"/limits/{quote(name)}"


pages: list[PageRoute] = [
    PageRoute("/limits", "limits.html", load_list),
    PageRoute("/limits/{limit_name:path}", "limit.html", load_limit),
]
actions: list[Route] = [
    Route("/limits/set", set_limit, methods=["POST"]),
    Route("/limits/remove", remove_limit, methods=["POST"]),
    Route("/limits/set-type", set_type_limit, methods=["POST"]),
    Route("/limits/clear-type", clear_type_limit, methods=["POST"]),
]
