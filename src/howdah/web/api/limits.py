"""Limits: the named limits and the rules of types, and changes to both."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.exceptions import HTTPException

from howdah import observe
from howdah.admit import Rate, check_limit_name, key_rule
from howdah.checks.limit_names import UnknownLimit
from howdah.errors import BadInput
from howdah.observe import LimitOverTime, Limits, NamedLimit, Range
from howdah.store.admit import KEPT
from howdah.web import actions
from howdah.web.api.actions import Changed
from howdah.web.api.endpoint import Endpoints
from howdah.web.api.queries import JobTypeName, RangeQuery
from howdah.web.context import DashboardContext

endpoints: Endpoints = Endpoints()

MOST = 2**31 - 1
YEAR = 31_622_400  # seconds
LimitName = Annotated[
    str, Meta(min_length=1, max_length=100, pattern="^[^:\\u0000-\\u001f\\u007f-\\u009f]*$")
]
Slots = Annotated[int, Meta(ge=1, le=MOST)]


class LimitRate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many jobs may start per time."""

    count: Annotated[int, Meta(ge=1, le=1_000_000)]
    per: Annotated[float, Meta(ge=1, le=YEAR, description="Seconds.")] = 1
    burst: (
        Annotated[Slots, Meta(description="How many may start at once after a pause.")] | UnsetType
    ) = UNSET

    def rate(self) -> Rate:
        burst = None if self.burst is UNSET else self.burst
        return Rate(self.count, per=timedelta(seconds=self.per), burst=burst)


class LimitChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The new values of a limit. What is left out stays as it is; null: any number."""

    at_once: Annotated[Slots | None, Meta(description="How many jobs may be admitted at once.")] | (
        UnsetType
    ) = UNSET
    rate: LimitRate | UnsetType | None = UNSET
    per_key: (
        Annotated[bool, Meta(description="Each key has the whole limit for itself.")] | UnsetType
    ) = UNSET


class NewTypeRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rule of a job type, as a whole."""

    at_once: Annotated[
        Slots | None, Meta(description="How many jobs of one key at once; null: any number.")
    ] = None
    ordered: Annotated[
        bool, Meta(description="One job of a key after the other, as they were enqueued.")
    ] = False
    fair: Annotated[bool, Meta(description="No limit per key, but keys take turns.")] = False
    limit: Annotated[LimitName | None, Meta(description="The named limit of each job.")] = None


@endpoints.get("/limits")
async def limits(context: DashboardContext) -> Limits:
    """The named limits and the rules of types, and how they are used now.

    Jobs are counted exactly up to 10,000; `more` says that there are more. `late` names counts that
    are missing because they took too long; they are null.
    """
    return await observe.limits(context.store, within=context.within)


@endpoints.get("/limits/{limit}")
async def limit(context: DashboardContext, limit: LimitName) -> NamedLimit:
    """One named limit. A slash in its name is written %2F."""
    found = await observe.limits(context.store, within=context.within)
    return found.limit(limit)


@endpoints.get("/limits/{limit}/measures")
async def measures_of_limit(
    context: DashboardContext, limit: LimitName, query: RangeQuery
) -> LimitOverTime:
    """The use of a limit over time: the data of its charts.

    `admitted` is the most jobs that held a slot at once, `mean` the mean of all counts in a point.
    Null: nothing was counted. `attempts` are those of the types that name the limit now, when they
    end. A limit without history has zeros.
    """
    return await observe.limit_over_time(
        context.store, limit, Range(query.range), within=context.within
    )


@endpoints.post("/limits/{limit}/set", also=(409,))
async def set_limit(
    context: DashboardContext, who: str, limit: LimitName, body: LimitChange
) -> NamedLimit:
    """Change a named limit, or make it, from now on and for the jobs that wait.

    404: there is no such limit, and neither `at_once` nor `rate` was given to make it. 409: neither
    would be left.
    """
    rate = KEPT if body.rate is UNSET else None if body.rate is None else body.rate.rate()
    _refuse_name(limit)
    with _conflict():
        await actions.change_limit(
            context,
            who,
            limit,
            KEPT if body.at_once is UNSET else body.at_once,
            rate,
            KEPT if body.per_key is UNSET else body.per_key,
        )
    return (await observe.limits(context.store, within=context.within)).limit(limit)


def _refuse_name(name: str) -> None:
    """Answer 404 for a name that no limit can have."""
    try:
        check_limit_name(name)
    except BadInput as error:
        raise UnknownLimit(str(error)) from None


@contextmanager
def _conflict() -> Generator[None]:
    """Answer 409 for values that do not fit together."""
    try:
        yield
    except UnknownLimit:
        raise
    except BadInput as error:
        raise HTTPException(409, str(error)) from None


@endpoints.post("/limits/{limit}/remove")
async def remove_limit(context: DashboardContext, who: str, limit: LimitName) -> Changed:
    """Remove a named limit, also from the rules of types. It holds no job back any more."""
    await actions.remove_limit(context, who, limit)
    return Changed(True)


@endpoints.post("/types/{job_type}/set-limit", also=(404, 409))
async def set_type_limit(
    context: DashboardContext, who: str, job_type: JobTypeName, body: NewTypeRule
) -> Changed:
    """Set the rule of a type: slots per key, order, and the named limit that its jobs need.

    404: there is no such named limit. 409: `ordered` needs one slot per key: leave `at_once` out.
    `fair` goes together with neither.
    """
    with _conflict():
        rule = key_rule(at_once=body.at_once, ordered=body.ordered, fair=body.fair)
    rule = msgspec.structs.replace(rule, limit=body.limit)
    await actions.set_type_limit(context, who, job_type, rule)
    return Changed(True)


@endpoints.post("/types/{job_type}/clear-limit")
async def clear_type_limit(context: DashboardContext, who: str, job_type: JobTypeName) -> Changed:
    """Remove the rule of a type: each of its keys has one slot then."""
    return Changed(await actions.clear_type_limit(context, who, job_type))
