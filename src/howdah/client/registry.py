"""Registry: the functions of a queue by job type, and the decorator that registers them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Concatenate, ParamSpec, TypeVar, cast, overload

from howdah.admit import KeyOf, Limit, key_rule
from howdah.checks.durations import YEAR, check_length, check_wait
from howdah.checks.queue_names import DEFAULT_QUEUE, check_queue_name
from howdah.checks.schedule_names import check_schedule_name
from howdah.checks.unique import By, check_unique
from howdah.client.job_type import JobType, QueueLike
from howdah.enqueue import check_max_attempts, check_priority
from howdah.errors import BadInput, DuplicateJobType
from howdah.handler import Backoff, Handler, Rules, Run
from howdah.job import DEFAULT_MAX_ATTEMPTS, DEFAULT_PRIORITY, OnConflict, Until
from howdah.run.context import JobContext
from howdah.run.hooks import Hooks
from howdah.store.schedules import Plan, check_scheduled
from howdah.text.reasons import name_of, shown
from howdah.timing import Missed, Overlap, Timing

P = ParamSpec("P")
R = TypeVar("R")
ExceptionType = type[BaseException]
ExceptionTypes = ExceptionType | Sequence[ExceptionType]


class Registry:
    """The functions of one queue by job type."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}
        self.hooks: Hooks = Hooks()
        self.limits: dict[str, Limit] = {}
        self._declared: list[Declared] = []
        self._plain: set[str] = set()  # types that @queue.cron made of plain functions

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return self._handlers

    def add(self, function: Callable[..., Any], name: str | None, rules: Rules) -> Handler:
        handler = Handler(function, JobContext, name=name, rules=rules)
        registered = self._handlers.get(handler.job_type)
        if registered is not None:
            raise DuplicateJobType(
                f"job type {handler.job_type!r} is {registered.where} already; "
                f"give {handler.where} another name with @queue.job(name=…)"
            )
        self._handlers[handler.job_type] = handler
        return handler

    def add_limit(self, limit: Limit) -> None:
        """Add a named limit; the same one may be given again."""
        if self.limits.setdefault(limit.name, limit) != limit:
            raise BadInput(f"the limit {limit.name} is defined already, in another way")

    def add_scheduled(self, function: Callable[..., Any], queue: QueueLike) -> JobType[..., Any]:
        """Return the job type that a schedule is for; a plain function becomes one."""
        if isinstance(function, JobType):
            known = cast("JobType[..., Any]", function)
            if self._handlers.get(known.name) is not known.handler:
                raise BadInput(
                    f"{known!r} was registered with another queue: declare its schedule there"
                )
            return known
        plain = rules(
            priority=DEFAULT_PRIORITY,
            max_attempts=DEFAULT_MAX_ATTEMPTS,
            timeout=None,
            run=None,
            backoff=None,
            retry_on=Exception,
            fail_on=(),
        )
        job_type: JobType[..., Any] = JobType(self.add(function, None, plain), queue)
        self._plain.add(job_type.name)
        return job_type

    def add_schedule(self, declared: Declared) -> None:
        """Add a schedule that code declares; raises BadInput if it makes no sense."""
        try:
            name = declared.plan().name
            if name in {plan.name for plan in self.plans}:
                raise BadInput(
                    f"there is a schedule {shown(name)} already: give this one another name, "
                    "such as name='nightly'"
                )
        except BadInput:
            if all(other.job_type is not declared.job_type for other in self._declared):
                self._remove_plain(declared.job_type)
            raise
        self._declared.append(declared)

    def register(
        self, function: Callable[..., Any], name: str | None, rules: Rules, queue: QueueLike
    ) -> JobType[..., Any]:
        """Make a job type of a function, also of one that @queue.cron below has made one."""
        plain = cast("JobType[..., Any]", function)
        if (
            not isinstance(function, JobType)
            or plain.name not in self._plain
            or self._handlers.get(plain.name) is not plain.handler
        ):
            given = cast("Callable[..., Any]", function)
            return JobType(self.add(given, name, rules), queue)
        self._remove_plain(plain)
        job_type: JobType[..., Any] = JobType(self.add(plain.function, name, rules), queue)
        for declared in self._declared:
            if declared.job_type is plain:
                declared.job_type = job_type
                declared.plan()  # raises an error if the options of the type do not fit
        return job_type

    def _remove_plain(self, job_type: JobType[..., Any]) -> None:
        if job_type.name in self._plain:
            self._plain.remove(job_type.name)
            del self._handlers[job_type.name]

    @property
    def plans(self) -> list[Plan]:
        """The schedules that code declares."""
        return [declared.plan() for declared in self._declared]


class Declared:
    """A schedule that code declares, and the job type that it is for."""

    def __init__(
        self,
        job_type: JobType[..., Any],
        name: str | None,
        data: Mapping[str, Any],
        timing: Timing,
        missed: Missed,
        overlap: Overlap,
    ) -> None:
        self.job_type: JobType[..., Any] = job_type
        self._name = name
        self._data = data
        self._timing = timing
        self._missed: Missed = missed
        self._overlap: Overlap = overlap

    def plan(self) -> Plan:
        return Plan(
            name=self._name or check_schedule_name(self.job_type.name),
            draft=check_scheduled(self.job_type.draft(**self._data)),
            timing=self._timing,
            missed=self._missed,
            overlap=self._overlap,
        )


class Registration:
    """The decorator that `@queue.job(…)` returns."""

    def __init__(
        self, registry: Registry, queue: QueueLike, name: str | None, rules: Rules
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
        return self._registry.register(function, self._name, self._rules, self._queue)


def rules(
    *,
    priority: int,
    max_attempts: int,
    timeout: timedelta | float | None,
    run: Run | None,
    backoff: Backoff | timedelta | float | None,
    retry_on: ExceptionTypes,
    fail_on: ExceptionTypes,
    label: str | None = None,
    queue: str = DEFAULT_QUEUE,
    expires: timedelta | float | None = None,
    unique: By | None = None,
    unique_until: Until | None = None,
    unique_for: timedelta | float | None = None,
    on_conflict: OnConflict | None = None,
    key: KeyOf | None = None,
    at_once: int | None = None,
    ordered: bool = False,
    fair: bool = False,
    limit: str | None = None,
) -> Rules:
    """Make the rules of a job type; raises BadInput for a bad value."""
    if key is None:
        _check_no_rule_for_keys(at_once, ordered, fair)
    return Rules(
        priority=check_priority(priority),
        max_attempts=check_max_attempts(max_attempts),
        timeout=None if timeout is None else check_length("timeout", timeout),
        run=run,
        backoff=_backoff(backoff),
        retry_on=_exception_types("retry_on", retry_on),
        fail_on=_exception_types("fail_on", fail_on),
        label=label,
        queue=check_queue_name(queue),
        expires=None if expires is None else check_length("expires", expires),
        unique=check_unique(unique, unique_until, unique_for, on_conflict),
        keys=key_rule(key, at_once, ordered, limit, fair),
    )


def _check_no_rule_for_keys(at_once: int | None, ordered: bool, fair: bool) -> None:
    """Raise BadInput if a type whose jobs have no key says how jobs with one key run."""
    for option, given in (
        (f"at_once={at_once}", at_once is not None),
        ("ordered=True", ordered is True),
        ("fair=True", fair is True),
    ):
        if given:
            raise BadInput(
                f'{option} needs key, such as key="tenant_id": it is about jobs with the same key. '
                'For all jobs of the type alike, write key=lambda payload: "all"; '
                "where the keys come with .options(key=…) or SQL, key=lambda payload: None"
            )


def _backoff(backoff: Any) -> Backoff:
    if backoff is None:
        return Backoff()
    if isinstance(backoff, Backoff):
        return backoff
    if isinstance(backoff, type) or callable(getattr(backoff, "after", None)):
        raise BadInput(
            f"backoff must be a Backoff, or the first wait, not {shown(backoff)}: "
            "write Backoff(first=2), or an object of a subclass of Backoff"
        )
    return Backoff(first=check_wait("backoff", backoff, YEAR))


def _exception_types(what: str, given: object) -> tuple[ExceptionType, ...]:
    """Return exception classes as a tuple."""
    kinds: list[object] = (
        list(cast("list[object]", given))
        if isinstance(given, list | tuple | set | frozenset)
        else [given]
    )
    for value in kinds:
        kind: Any = value
        if isinstance(kind, BaseException):
            name = name_of(type(kind))
            raise BadInput(
                f"{what} takes exception classes, not the exception {shown(kind)}: "
                f"write {what}={name}"
            )
        if not isinstance(kind, type) or not issubclass(kind, BaseException):
            raise BadInput(
                f"{what} must be an exception class or a list of them, not {shown(value)}: "
                f"write {what}=OSError or {what}=(OSError, ValueError)"
            )
    return tuple(cast("list[ExceptionType]", kinds))
