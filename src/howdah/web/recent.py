"""Recent: what was asked a moment ago is not asked again for every page that is open.

Comes after  desk.py
Comes before pages/

Whoever loads a page sees how things are now. A page that is drawn again because it is open takes
an answer that is a second old, and the doctor's that is a few seconds old: so the overview, the
types and each single type together cost one look, whoever and however many look at them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from starlette.requests import Request

from howdah import observe
from howdah.observe import Diagnosis, OverTime, Overview, Range
from howdah.web.desk import Desk

LIVE = "howdah.live"  # in the scope of a request that draws an open page again
RECHECK = 0.9  # seconds that an answer may be old on an open page: less than between two drawings
CHARTED = 10.0  # charts: they get a point a minute
CHARTS = 200  # of types and ranges that are remembered
EXAMINED = 5.0  # the doctor's, which changes slowly and costs more

_T = TypeVar("_T")


class Answer(Generic[_T]):
    """One question, asked once for all who wait for it."""

    def __init__(self, ask: Callable[[], Awaitable[_T]]) -> None:
        self._ask = ask
        self._lock = asyncio.Lock()
        self._known: tuple[float, _T] | None = None

    async def get(self, old: float = 0.0) -> _T:
        """Return an answer that was asked for at most so many seconds before this call."""
        called = time.monotonic()
        async with self._lock:
            if self._known is None or self._known[0] < called - old:
                asked = time.monotonic()
                self._known = (asked, await self._ask())
            return self._known[1]


class Recent:
    """What one dashboard has asked of late."""

    def __init__(self, desk: Desk) -> None:
        # a desk holds its Recent by a weak key, so this must hold no desk
        store, within = desk.store, desk.within
        self._store, self._within = store, within
        self._charts: dict[tuple[Range, str | None], Answer[OverTime]] = {}
        self._overview = Answer(lambda: observe.overview(store, within=within))
        self._diagnosis = Answer(lambda: observe.examine(store, within=within))

    async def overview(self, request: Request) -> Overview:
        return await self._overview.get(RECHECK if LIVE in request.scope else 0.0)

    async def over_time(self, request: Request, range: Range, job_type: str | None) -> OverTime:
        answer = self._charts.pop((range, job_type), None) or Answer(
            lambda: observe.over_time(self._store, range, job_type, within=self._within)
        )
        self._charts[range, job_type] = answer
        while len(self._charts) > CHARTS:
            del self._charts[next(iter(self._charts))]
        return await answer.get(CHARTED if LIVE in request.scope else 0.0)

    async def diagnosis(self, request: Request, old: float = EXAMINED) -> Diagnosis:
        return await self._diagnosis.get(old if LIVE in request.scope else 0.0)


_known: WeakKeyDictionary[Desk, Recent] = WeakKeyDictionary()


def recent(desk: Desk) -> Recent:
    """Return what this dashboard has asked of late."""
    return _known.setdefault(desk, Recent(desk))
