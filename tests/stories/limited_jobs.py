"""The jobs of the stories that have a key, a limit, a unique key or an expiry, beside the others.

    howdah worker tests.stories.limited_jobs:queue

STORY_RULES=later is another version of the code: it declares other rules.
"""

from __future__ import annotations

import asyncio
import os
import time
from datetime import timedelta
from typing import NamedTuple

from howdah import JobContext, Rate
from tests.stories.jobs import MANY, SOON, Ending, at_work, queue


class Rules(NamedTuple):
    """What differs between two versions of the code."""

    of_tenant: int
    call_of_tenant: int
    api: int
    thread_limit: str | None
    rated: Rate
    each: Rate


RULES = {
    "first": Rules(2, 2, 3, None, Rate(20, burst=2), Rate(5, burst=1)),
    "later": Rules(4, 1, 6, "api", Rate(10, burst=4), Rate(10, burst=3)),
}
rules = RULES[os.environ.get("STORY_RULES", "first")]

queue.limit("api", at_once=rules.api)
queue.limit("rated", rate=rules.rated)
queue.limit("each", at_once=2, rate=rules.each, per_key=True)


async def run_for(ctx: JobContext, seconds: float, until: int = 1) -> Ending:
    """Run for some seconds; fail before a given attempt."""
    with at_work(ctx) as ending:
        if seconds > 0:
            await asyncio.sleep(seconds)
        if ctx.attempt < until:
            raise RuntimeError(f"not before attempt {until}")
        return ending


@queue.job(max_attempts=MANY, backoff=SOON, key="account", ordered=True)
async def book(ctx: JobContext, token: str, account: str, seconds: float, until: int) -> Ending:
    return await run_for(ctx, seconds, until)


@queue.job(max_attempts=MANY, backoff=SOON, key="account", ordered=True)
async def post(ctx: JobContext, token: str, account: str, until: int) -> Ending:
    """Return at once, so that a worker can run many jobs of a key one after the other."""
    return await run_for(ctx, 0, until)


@queue.job(max_attempts=MANY, backoff=SOON, key="account", ordered=True, limit=rules.thread_limit)
def book_in_thread(ctx: JobContext, token: str, account: str, seconds: float, until: int) -> Ending:
    """Do the same in a thread, which cannot be cancelled."""
    with at_work(ctx) as ending:
        time.sleep(seconds)
        if ctx.attempt < until:
            raise RuntimeError(f"not before attempt {until}")
        return ending


@queue.job(max_attempts=MANY, backoff=SOON, key="tenant", at_once=rules.of_tenant)
async def of_tenant(ctx: JobContext, token: str, tenant: str, seconds: float, until: int) -> Ending:
    return await run_for(ctx, seconds, until)


@queue.job(max_attempts=MANY, backoff=SOON, limit="api")
async def call(ctx: JobContext, token: str, seconds: float) -> Ending:
    return await run_for(ctx, seconds)


@queue.job(max_attempts=MANY, backoff=SOON, limit="api", key="tenant", at_once=rules.call_of_tenant)
async def call_of_tenant(
    ctx: JobContext, token: str, tenant: str, seconds: float, until: int
) -> Ending:
    return await run_for(ctx, seconds, until)


@queue.job(max_attempts=MANY, backoff=SOON, limit="rated")
async def rated(ctx: JobContext, token: str, until: int) -> Ending:
    return await run_for(ctx, 0, until)


@queue.job(max_attempts=MANY, backoff=SOON, limit="each", key="tenant")
async def rated_each(ctx: JobContext, token: str, tenant: str, seconds: float) -> Ending:
    return await run_for(ctx, seconds)


@queue.job(max_attempts=MANY, backoff=SOON, unique="order")
async def once(ctx: JobContext, token: str, order: int, seconds: float, until: int) -> Ending:
    return await run_for(ctx, seconds, until)


@queue.job(max_attempts=MANY, backoff=SOON, unique="order", unique_until="started")
async def once_until_started(ctx: JobContext, token: str, order: int, seconds: float) -> Ending:
    return await run_for(ctx, seconds)


@queue.job(max_attempts=MANY, backoff=SOON, key="tenant", expires=timedelta(seconds=1))
async def brief(ctx: JobContext, token: str, tenant: str, seconds: float) -> Ending:
    """Wait for the only slot of its key, and often expire before."""
    return await run_for(ctx, seconds)
