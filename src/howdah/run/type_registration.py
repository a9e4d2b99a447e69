"""Type registration: a worker registers its job types in the database.

In SQL  sql/50_run/register_job_types.sql, touch_job_types.sql

One statement registers all types when the worker starts, another one the rules of their keys and
limits, and a third one the schedules that the code declares. After that, once a minute, the worker
only reports that it still knows its types. A failure is logged and tried again later: jobs matter
more.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from howdah.admit import Limit
from howdah.errors import BadInput, HowdahError
from howdah.growing_pause import GrowingPause
from howdah.handler import Handler
from howdah.safe_logging import log_named
from howdah.store import Store
from howdah.store.admit import register_limits
from howdah.store.job_types import register_job_types, touch_job_types
from howdah.store.schedules import Plan, register_schedules

_log = log_named("howdah.types")

EVERY = 60.0  # seconds between two reports that a worker knows its types
FIRST_RETRY = 5.0  # seconds until a failed report is tried again
_LONGEST = timedelta(days=36_500)  # PostgreSQL cannot count the seconds of every timedelta


class TypeRegistration:
    """The job types of one worker; `run` keeps them fresh for as long as the worker lives."""

    def __init__(
        self,
        store: Store,
        worker_id: str,
        handlers: Mapping[str, Handler],
        limits: Mapping[str, Limit],
        plans: Sequence[Plan] = (),
        code_types: Sequence[str] = (),
    ) -> None:
        self._store = store
        self._worker_id = worker_id
        self._handlers = handlers
        self._limits = limits
        self._plans = plans
        self._code_types = code_types
        self._declares = True  # whether the schedules are still to be registered
        self._unregistered: set[str] = set(handlers)

    async def step(self) -> bool:
        """Register the types that are not, or report that we still know them; False: retry.

        Raises BadInput for a rule that the database refuses, such as a limit that nobody defined.
        """
        try:
            if not self._unregistered:
                self._unregistered = await touch_job_types(self._store, list(self._handlers))
            if self._unregistered:
                await self._register(self._unregistered)
                await self._register_rules(sorted(self._unregistered))
                self._unregistered = set()
            if self._declares:
                await self._register_schedules()
                self._declares = False
        except _RefusedRule as refused:
            raise refused.error from None
        except HowdahError as error:
            _log.warning("types.unregistered id=%s error=%s", self._worker_id, error)
            return False
        return True

    async def run(self) -> None:
        """Call `step` every minute, and sooner after a failure."""
        retry = GrowingPause(FIRST_RETRY, EVERY)
        wait = retry.next() if self._unregistered or self._declares else EVERY
        while True:
            await asyncio.sleep(wait * random.uniform(0.8, 1.2))  # noqa: S311
            if await self.step():
                retry.reset()
                wait = EVERY
            else:
                wait = retry.next()

    async def _register(self, names: Iterable[str]) -> None:
        rows = [_row(self._handlers[name]) for name in sorted(names)]
        await register_job_types(self._store, self._worker_id, rows)

    async def _register_rules(self, names: list[str]) -> None:
        types = [{"name": name, **self._handlers[name].rules.keys.registered} for name in names]
        try:
            changed = await register_limits(
                self._store,
                self._worker_id,
                types,
                [limit.row() for limit in self._limits.values()],
            )
        except BadInput as error:
            raise _RefusedRule(error) from error
        for kind, name, rule in changed:
            _log.info("limits.changed id=%s %s=%s rule=%s", self._worker_id, kind, name, rule)

    async def _register_schedules(self) -> None:
        try:
            done = await register_schedules(
                self._store, self._worker_id, self._code_types, self._plans
            )
        except BadInput as error:
            raise _RefusedRule(error) from error
        for name, what in done:
            if what == "kept":
                _log.warning("schedule.kept id=%s name=%s", self._worker_id, name)
            else:
                _log.info("schedule.registered id=%s name=%s done=%s", self._worker_id, name, what)


class _RefusedRule(HowdahError):
    def __init__(self, error: BadInput) -> None:
        super().__init__(str(error))
        self.error = error


def _row(handler: Handler) -> dict[str, object]:
    """Describe one type with the names of the columns of howdah.job_types."""
    rules = handler.rules
    return {
        "name": handler.job_type,
        "priority": rules.priority,
        "max_attempts": rules.max_attempts,
        "queue": rules.queue,
        "timeout": _interval(rules.timeout),
        "expires": _interval(rules.expires),
        "run": handler.run,
        "parameters": handler.parameters,
        "signature": handler.signature,
        "label": rules.label,
    }


def _interval(length: timedelta | None) -> str | None:
    """Write a length of time as PostgreSQL reads it."""
    return None if length is None else f"{min(length, _LONGEST).total_seconds():f} s"
