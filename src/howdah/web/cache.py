"""Cache: open pages share the results of queries.

A page that a user loads always queries the database. A live update of an open page may use a
result that is a second old, or a few seconds for the doctor. So the overview, the types and each
type's page together cost one query, however many users have them open.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from starlette.requests import Request

from howdah import observe
from howdah.observe import Diagnosis, LimitOverTime, Limits, OverTime, Overview, Range, SchedulesNow
from howdah.web.context import DashboardContext

LIVE = "howdah.live"  # scope key of a live update
MAX_AGE = 0.9  # seconds; less than the interval of live updates
CHARTS_MAX_AGE = 10.0  # charts get a point a minute
CHARTS_KEPT = 200  # types, limits and ranges
DIAGNOSIS_MAX_AGE = 5.0  # the doctor's checks change slowly and cost more

_K = TypeVar("_K")
_T = TypeVar("_T")


class CachedQuery(Generic[_T]):
    """One query and its last result, shared by all who wait for it."""

    def __init__(self, run: Callable[[], Awaitable[_T]]) -> None:
        self._run = run
        self._lock = asyncio.Lock()
        self._result: tuple[float, _T] | None = None  # with the time of the query

    async def get(self, max_age: float = 0.0) -> _T:
        """Return a result that is at most so many seconds older than this call."""
        called = time.monotonic()
        async with self._lock:
            if self._result is None or self._result[0] < called - max_age:
                started = time.monotonic()
                self._result = (started, await self._run())
            return self._result[1]


class Cache:
    """The cached queries of one dashboard."""

    def __init__(self, context: DashboardContext) -> None:
        # the context is a weak key of this cache, so the cache must not refer to it
        store, within = context.store, context.within
        self._store, self._within = store, within
        self._charts: dict[tuple[Range, str | None], CachedQuery[OverTime]] = {}
        self._limit_charts: dict[tuple[Range, str], CachedQuery[LimitOverTime]] = {}
        self._limits = CachedQuery(lambda: observe.limits(store, within=within))
        self._schedules = CachedQuery(lambda: observe.schedules_now(store, within=within))
        self._overview = CachedQuery(lambda: observe.overview(store, within=within))
        self._diagnosis = CachedQuery(lambda: observe.examine(store, within=within))

    async def overview(self, request: Request) -> Overview:
        return await self._overview.get(MAX_AGE if LIVE in request.scope else 0.0)

    async def over_time(self, request: Request, range: Range, job_type: str | None) -> OverTime:
        query = _kept(
            self._charts,
            (range, job_type),
            lambda: observe.over_time(self._store, range, job_type, within=self._within),
        )
        return await query.get(CHARTS_MAX_AGE if LIVE in request.scope else 0.0)

    async def limit_over_time(self, request: Request, range: Range, name: str) -> LimitOverTime:
        query = _kept(
            self._limit_charts,
            (range, name),
            lambda: observe.limit_over_time(self._store, name, range, within=self._within),
        )
        return await query.get(CHARTS_MAX_AGE if LIVE in request.scope else 0.0)

    async def limits(self, request: Request) -> Limits:
        return await self._limits.get(MAX_AGE if LIVE in request.scope else 0.0)

    async def schedules(self, request: Request) -> SchedulesNow:
        return await self._schedules.get(MAX_AGE if LIVE in request.scope else 0.0)

    async def diagnosis(self, request: Request, max_age: float = DIAGNOSIS_MAX_AGE) -> Diagnosis:
        return await self._diagnosis.get(max_age if LIVE in request.scope else 0.0)


def _kept(
    queries: dict[_K, CachedQuery[_T]], key: _K, run: Callable[[], Awaitable[_T]]
) -> CachedQuery[_T]:
    """Return the query of a key, made if there is none; the longest unused ones are dropped."""
    query = queries[key] = queries.pop(key, None) or CachedQuery(run)
    while len(queries) > CHARTS_KEPT:
        del queries[next(iter(queries))]
    return query


_caches: WeakKeyDictionary[DashboardContext, Cache] = WeakKeyDictionary()


def cache_of(context: DashboardContext) -> Cache:
    """Return the cache of a dashboard."""
    return _caches.setdefault(context, Cache(context))
