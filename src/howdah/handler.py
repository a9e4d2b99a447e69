"""Handler: a function that does a type of job, and the rules it is run by.

The first parameter annotated `JobContext` is the running job; the others are the payload, a
JSON object of named arguments. Their annotations are the schema: what is enqueued is checked
against them, and what is claimed is decoded straight into them.
"""

from __future__ import annotations

import copy
import inspect
import random
import typing
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from types import UnionType
from typing import Any, Literal, cast

import msgspec

from howdah import payload
from howdah.checks.durations import YEAR, check_wait
from howdah.checks.functions import check_function, check_top_level, parameters_of
from howdah.errors import BadInput
from howdah.job import DEFAULT_MAX_ATTEMPTS, DEFAULT_PRIORITY
from howdah.result import ResultType
from howdah.signature import Parameter, fingerprint
from howdah.signature import parameters_of as described
from howdah.text.labels import check_label
from howdah.text.reasons import describe, reason_of, shown

Run = Literal["async", "thread", "process"]
ExceptionTypes = tuple[type[BaseException], ...]


_FIRST, _CAP = timedelta(seconds=2), timedelta(hours=1)


@dataclass(frozen=True, init=False)
class Backoff:
    """How long to wait before the next attempt: doubling, spread by chance, capped.

    Lengths are seconds or a timedelta. Without a `cap` it is an hour, or `first` if that is longer.
    """

    first: timedelta
    factor: float
    cap: timedelta
    jitter: float  # up to this part of the wait is added or taken away

    def __init__(
        self,
        first: timedelta | float = _FIRST,
        factor: float = 2.0,
        cap: timedelta | float | None = None,
        jitter: float = 0.25,
    ) -> None:
        begin = check_wait("first in Backoff(…)", first, YEAR)
        values = {
            "first": begin,
            "factor": _number("factor in Backoff(…)", factor, 1.0, 1_000_000.0),
            "cap": max(_CAP, begin) if cap is None else check_wait("cap in Backoff(…)", cap, YEAR),
            "jitter": _number("jitter in Backoff(…)", jitter, 0.0, 1.0),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def after(self, attempt: int) -> timedelta:
        """Return the wait after the given attempt failed; attempts count from 1."""
        seconds = self.cap.total_seconds()
        with suppress(OverflowError):  # far beyond any cap
            seconds = min(self.first.total_seconds() * self.factor ** (attempt - 1), seconds)
        return timedelta(seconds=seconds * (1 + self.jitter * random.uniform(-1, 1)))  # noqa: S311


def _number(what: str, number: object, least: float, most: float) -> float:
    if not isinstance(number, int | float) or isinstance(number, bool):
        raise BadInput(f"{what} is a number from {least:g} to {most:g}, not {shown(number)}")
    if not least <= number <= most:  # which NaN is not either
        raise BadInput(f"{what} lies between {least:g} and {most:g}, not {shown(number)}")
    return float(number)


class Misfit(BadInput):
    """A payload that a function cannot be called with.

    `by_name`: it lacks a field or has one too many, as when it was made by other code.
    """

    def __init__(self, said: str, *, by_name: bool) -> None:
        super().__init__(said)
        self.by_name = by_name


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What a type of job is run by, unless a single job says otherwise."""

    priority: int = DEFAULT_PRIORITY
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    timeout: timedelta | None = None
    run: Run | None = None
    backoff: Backoff = Backoff()
    retry_on: ExceptionTypes = (Exception,)
    fail_on: ExceptionTypes = ()
    label: str | None = None  # names one job in lists: "{order_id}"


class Handler:
    """A registered function: how to call it, and how to read and write its payload."""

    def __init__(
        self, function: Callable[..., Any], context: type, *, name: str | None = None, rules: Rules
    ) -> None:
        if isinstance(registered := getattr(function, "handler", None), Handler):
            raise BadInput(
                f"{registered.where} is the job type {registered.job_type!r} already: "
                "register its .function to have it under another name"
            )
        self.function: Callable[..., Any] = check_function(function)
        self.job_type: str = check_job_type(name if name is not None else function.__name__)
        self.rules = rules
        self._what = f"the payload of {self.job_type}"
        self.run: Run = _way_to_run(function, rules.run)
        if self.run == "process":
            check_top_level(function)
        self.awaits_only: bool = self.run == "async" and rules.timeout is None
        self.threads_only: bool = self.run == "thread" and rules.timeout is None
        self.context_name: str | None
        parameters, self.context_name = _parameters(function, context)
        self._context_first = self.context_name == next(iter(parameters_of(function)), "")
        self._fields = tuple(parameters)
        self._keyword_only = frozenset(
            name for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY
        )
        self._shape = _shape(function, self.job_type, parameters)
        self._decoder = _decoder(function, self._shape, parameters)
        self._parameters = parameters
        if rules.label is not None:
            check_label(rules.label, self.job_type, self._fields)

    @property
    def where(self) -> str:
        """Where the function is written, for errors that name it."""
        return f"{self.function.__module__}.{self.function.__qualname__}"

    @cached_property
    def parameters(self) -> list[Parameter]:
        """The payload's arguments, described for those who do not have the function."""
        return described(self._parameters)

    @cached_property
    def signature(self) -> str:
        """A fingerprint of the parameters and their types."""
        return fingerprint(self._shape, self.parameters)

    @cached_property
    def returns(self) -> ResultType:
        """What the function returns, for those who ask for a result."""
        return ResultType(self.function)

    def encode(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> str:
        """Encode the arguments of a call as payload, refusing what the function would refuse."""
        try:
            arguments = self._shape(**self._named(args, kwargs)) if args else self._shape(**kwargs)
        except TypeError as error:
            raise BadInput(f"{self.job_type}: {error}") from None
        data = payload.encode(arguments, self._what)
        self.decode(data)
        return data

    def _named(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object]:
        """Give positional arguments their names."""
        if len(args) > len(self._fields):
            raise BadInput(f"{self.job_type} takes {len(self._fields)} arguments, got {len(args)}")
        named = dict(zip(self._fields, args, strict=False))
        if twice := named.keys() & kwargs.keys():
            raise BadInput(f"{self.job_type} got argument {min(twice)!r} twice")
        return {**named, **kwargs}

    def decode(self, data: str) -> msgspec.Struct:
        """Decode a payload into the function's arguments; raises BadInput where it does not fit."""
        try:
            return cast("msgspec.Struct", self._decoder.decode(data))
        except ValueError as error:  # what msgspec and pydantic raise is one, too
            said = reason_of(error)
            raise Misfit(
                f"the payload does not fit {self.job_type}: {said}",
                by_name=_is_about_names(error, said),
            ) from None
        except Exception as error:  # whatever a type's own checks raise: the payload is to blame
            raise BadInput(
                f"the payload does not fit {self.job_type}: {describe(error)}"
            ) from error

    def call(self, arguments: msgspec.Struct, context: object) -> Any:
        """Call the function with decoded arguments; a coroutine comes back for an async one."""
        if not self._keyword_only:
            values = msgspec.structs.astuple(arguments)
            if self.context_name is None:
                return self.function(*values)
            if self._context_first:
                return self.function(context, *values)
        named = {name: getattr(arguments, name) for name in self._fields}
        if self.context_name is not None:
            named[self.context_name] = context
        return self.function(**named)


def _is_about_names(error: ValueError, said: str) -> bool:
    """Whether a payload lacks a field or has one too many, rather than a wrong value."""
    if "missing required field" in said or "contains unknown field" in said:
        return True
    details = getattr(error.__cause__, "errors", None)  # pydantic's
    if not callable(details):
        return False
    kinds = {one.get("type") for one in cast("list[dict[str, Any]]", details())}
    return bool(kinds) and kinds <= {"missing", "extra_forbidden"}


def check_job_type(name: str) -> str:
    """Refuse a name that the database would refuse, with a sentence that says why."""
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"a job type is text, not {type(name).__name__}")
    if not 1 <= len(name) <= 200:
        raise BadInput(f"a job type has 1 to 200 characters, this one has {len(name)}")
    if any(ord(c) < 32 or 127 <= ord(c) < 160 for c in name):
        raise BadInput(f"a job type has no control characters, this one does: {name!r}")
    if any(0xD800 <= ord(c) < 0xE000 for c in name):
        raise BadInput("a job type is text, this one has half a surrogate pair")
    return name


def _way_to_run(function: Callable[..., Any], asked: Run | None) -> Run:
    is_async = inspect.iscoroutinefunction(function)
    if asked is None:
        return "async" if is_async else "thread"
    if asked not in typing.get_args(Run):
        raise BadInput(f'run must be "async", "thread" or "process", not {asked!r}')
    if asked == "async" and not is_async:
        raise BadInput(f"{function.__qualname__} is a plain function: run it as thread or process")
    if asked == "thread" and is_async:
        raise BadInput(f"{function.__qualname__} is async: run it as async or process")
    return asked


def _parameters(
    function: Callable[..., Any], context: type
) -> tuple[dict[str, inspect.Parameter], str | None]:
    """Split a function's parameters into the payload's and the name of the context's."""
    hints = _hints(function)
    wanted: dict[str, inspect.Parameter] = {}
    context_name: str | None = None
    for position, (name, parameter) in enumerate(parameters_of(function).items()):
        if parameter.kind in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
            parameter.POSITIONAL_ONLY,
        ):
            raise BadInput(
                f"{function.__qualname__}: a payload is named arguments, so *args, **kwargs and "
                f"positional-only parameters cannot be filled ({parameter})"
            )
        hint = hints.get(name, Any)
        if isinstance(hint, type) and issubclass(hint, context):
            if context_name is not None:
                raise BadInput(
                    f"{function.__qualname__}: {context_name} and {name} are both annotated "
                    f"{context.__name__}: a job has one"
                )
            context_name = name
            continue
        if any(isinstance(part, type) and issubclass(part, context) for part in _parts(hint)):
            raise BadInput(
                f"{function.__qualname__}: {name} is always given: annotate it as "
                f"{context.__name__} alone, not as {hint}"
            )
        if name not in hints and (name == "ctx" or (name == "context" and not position)):
            raise BadInput(
                f"{function.__qualname__}: {name} has no annotation, so it would be an argument of "
                f"the payload. Write {name}: {context.__name__} (from howdah import "
                f"{context.__name__}), or give it the type of that argument"
            )
        wanted[name] = parameter.replace(annotation=hint)
    return wanted, context_name


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise BadInput(
            f"{function.__qualname__} has an annotation that cannot be looked up: {error}. "
            "Import the name where the function is defined, not only for type checking."
        ) from None
    except Exception as error:
        raise BadInput(
            f"{function.__qualname__} has an annotation that is no type: {describe(error)}"
        ) from None


def _parts(hint: object) -> tuple[object, ...]:
    """Return the types that a union is made of."""
    is_union = typing.get_origin(hint) in (typing.Union, UnionType)
    return typing.get_args(hint) if is_union else ()


def _decoder(
    function: Callable[..., Any],
    shape: type[msgspec.Struct],
    parameters: Mapping[str, inspect.Parameter],
) -> msgspec.json.Decoder[Any]:
    """Make the decoder of a payload; name the parameter whose annotation cannot be decoded."""
    try:
        return payload.decoder_for(shape)
    except Exception as error:
        for name, parameter in parameters.items():
            try:
                payload.decoder_for(parameter.annotation)
            except Exception as reason:
                raise _no_decoder(function, name, parameter.annotation, reason) from None
        raise BadInput(f"{function.__qualname__} cannot be a job: {describe(error)}") from None


def _no_decoder(
    function: Callable[..., Any], name: str, annotation: object, reason: Exception
) -> BadInput:
    said = reason_of(reason).partition("\n")[0].removesuffix(" is not supported")
    shown_type = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    how = (
        "JSON cannot tell its members apart: take one of them alone, or Any and tell them apart "
        "in the function"
        if _parts(annotation) or "union" in said.lower()
        else "take a type that JSON has, or Any"
    )
    return BadInput(
        f"{function.__qualname__}: no payload can fill {name}: {shown_type}. {how} ({said})"
    )


def _shape(
    function: Callable[..., Any], job_type: str, parameters: Mapping[str, inspect.Parameter]
) -> type[msgspec.Struct]:
    """Make the struct that the payload is decoded into."""
    fields: list[Any] = []
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty:
            fields.append((name, parameter.annotation))
        elif isinstance(cast("object", parameter.default), list | dict | set | bytearray):
            fields.append((name, parameter.annotation, _copied(parameter.default)))
        else:
            fields.append((name, parameter.annotation, parameter.default))
    try:
        return msgspec.defstruct(job_type, fields, kw_only=True, forbid_unknown_fields=True)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{function.__qualname__} cannot be a job: {error}") from None


def _copied(default: Any) -> Any:
    """Give every payload its own copy of a default that could be changed."""
    return msgspec.field(default_factory=lambda: copy.copy(default))
