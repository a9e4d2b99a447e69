"""Schedule registration: the decorators that `@queue.cron(…)` and `@queue.every(…)` return."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar, cast, overload

from howdah.checks.schedule_names import check_schedule_name
from howdah.client.job_type import JobType, QueueLike
from howdah.client.registry import Declared, Registry
from howdah.errors import BadInput
from howdah.run.context import JobContext
from howdah.text.reasons import shown
from howdah.timing import Missed, Overlap, Timing, check_missed, check_overlap

P = ParamSpec("P")
R = TypeVar("R")


class ScheduleRegistration:
    """The decorator that `@queue.cron(…)` returns."""

    def __init__(
        self,
        registry: Registry,
        queue: QueueLike,
        timing: Timing,
        name: object,
        data: object,
        missed: object,
        overlap: object,
    ) -> None:
        self._registry = registry
        self._queue = queue
        self._timing = timing
        self._name = None if name is None else check_schedule_name(name)
        self._data = _check_data(data)
        self._missed: Missed = check_missed(missed)
        self._overlap: Overlap = check_overlap(overlap)

    @overload
    def __call__(self, function: JobType[P, R]) -> JobType[P, R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[JobContext, P], Awaitable[R]]
    ) -> JobType[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, Awaitable[R]]) -> JobType[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[JobContext, P], R]) -> JobType[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R]) -> JobType[P, R]: ...
    def __call__(self, function: Callable[..., Any]) -> JobType[..., Any]:
        job_type = self._registry.add_scheduled(function, self._queue)
        self._registry.add_schedule(
            Declared(job_type, self._name, self._data, self._timing, self._missed, self._overlap)
        )
        return job_type


def _check_data(data: object) -> Mapping[str, Any]:
    if data is None:
        return {}
    if isinstance(data, Mapping):
        given = cast("Mapping[object, Any]", data)
        if all(isinstance(name, str) for name in given):
            return cast("Mapping[str, Any]", given)
    raise BadInput(f"data must be a mapping of arguments, not {shown(cast('object', data))}")
