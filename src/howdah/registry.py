"""Registry: which function does which type of job, and the decorator that says so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from howdah.enqueue import check_max_attempts, check_priority
from howdah.errors import BadInput, DuplicateJobType
from howdah.handler import Backoff, Handler, Rules, Run
from howdah.jobtype import JobType, Surroundings
from howdah.run.context import JobContext
from howdah.run.hooks import Hooks

P = ParamSpec("P")
R = TypeVar("R")
ExceptionType = type[BaseException]


class Registry:
    """The functions of one queue by job type."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}
        self.hooks: Hooks = Hooks()

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return self._handlers

    def add(self, function: Callable[..., Any], name: str | None, rules: Rules) -> Handler:
        handler = Handler(function, JobContext, name=name, rules=rules)
        taken = self._handlers.get(handler.job_type)
        if taken is not None:
            raise DuplicateJobType(
                f"job type {handler.job_type!r} is {taken.where} already; "
                f"give {handler.where} another name with @queue.job(name=…)"
            )
        self._handlers[handler.job_type] = handler
        return handler


class Registration:
    """What `@queue.job(…)` returns: the decorator proper."""

    def __init__(
        self, registry: Registry, queue: Surroundings, name: str | None, rules: Rules
    ) -> None:
        self._registry = registry
        self._queue = queue
        self._name = name
        self._rules = rules

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
        return JobType(self._registry.add(function, self._name, self._rules), self._queue)


def rules(
    *,
    priority: int,
    max_attempts: int,
    timeout: timedelta | float | None,
    run: Run | None,
    backoff: Backoff | None,
    retry_on: ExceptionType | tuple[ExceptionType, ...],
    fail_on: ExceptionType | tuple[ExceptionType, ...],
) -> Rules:
    """Make the rules of a job type, refusing what makes no sense."""
    if isinstance(timeout, int | float):
        timeout = timedelta(seconds=timeout)
    if timeout is not None and timeout <= timedelta():
        raise BadInput(f"timeout must be longer than nothing, not {timeout}")
    return Rules(
        priority=check_priority(priority),
        max_attempts=check_max_attempts(max_attempts),
        timeout=timeout,
        run=run,
        backoff=backoff or Backoff(),
        retry_on=retry_on if isinstance(retry_on, tuple) else (retry_on,),
        fail_on=fail_on if isinstance(fail_on, tuple) else (fail_on,),
    )
