"""Matching: act on every job that matches a filter, page by page from the newest to the oldest.

Comes after  observe/page.py
Comes before cli/requeue.py, top/ and web/bulk/

A page begins after the last job of the page before. So each job comes once, even if it matches
again after it was moved.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from datetime import timedelta
from uuid import UUID

import msgspec

from howdah.observe.filter import Filter
from howdah.observe.page import page
from howdah.store import Store

PAGE = 500  # jobs that are moved at once
WITHIN = timedelta(seconds=30)  # the time limit of one page: no person waits for it

Act = Callable[[list[UUID]], Awaitable[Collection[UUID]]]


class PageDone(msgspec.Struct, frozen=True):
    """One page of jobs that were acted on."""

    matched: int
    moved: int
    before: UUID | None  # where the next page begins; None: this was the last


async def act_on_matching(
    store: Store,
    wanted: Filter,
    act: Act,
    *,
    before: UUID | None = None,
    limit: int | None = None,
    except_type: str | None = None,
) -> AsyncGenerator[PageDone]:
    """Call `act` with the ids of each page; `act` returns the ids that it moved."""
    more = True
    while more:
        jobs = await page(store, wanted, before=before, limit=limit or PAGE, within=WITHIN)
        ids = [job.id for job in jobs.jobs if job.job_type != except_type]
        moved = await act(ids) if ids else ()
        before, more = jobs.before, jobs.before is not None
        yield PageDone(len(ids), len(moved), before)
