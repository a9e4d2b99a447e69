"""Handler: the function of a job type, and the rules by which it is run.

The parameter annotated `JobContext` is the running job. The others are the payload, a JSON object
of named arguments. Their annotations are the schema: enqueued payloads are checked against them,
and claimed payloads are decoded into them.
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
from msgspec.structs import astuple

from howdah import payload
from howdah.admit import KeyRule, key_of
from howdah.checks.durations import YEAR, check_wait
from howdah.checks.functions import check_function, check_top_level, parameters_of
from howdah.checks.queue_names import DEFAULT_QUEUE
from howdah.checks.unique import UniqueRule, check_parameter
from howdah.errors import BadInput
from howdah.job import DEFAULT_MAX_ATTEMPTS, DEFAULT_PRIORITY
from howdah.result import ResultType
from howdah.signature import Parameter, describe_parameters, fingerprint
from howdah.text.labels import check_label
from howdah.text.reasons import describe, reason_of, shown

Run = Literal["async", "thread", "process"]
ExceptionTypes = tuple[type[BaseException], ...]


_FIRST, _CAP = timedelta(seconds=2), timedelta(hours=1)


@dataclass(frozen=True, init=False)
class Backoff:
    """How long to wait before the next attempt: it grows by `factor`, with jitter, up to `cap`.

    Lengths are seconds or a timedelta. The default of `cap` is an hour, or `first` if longer.
    """

    first: timedelta
    factor: float
    cap: timedelta
    jitter: float  # at most this share of the wait is added or subtracted, at random

    def __init__(
        self,
        first: timedelta | float = _FIRST,
        factor: float = 2.0,
        cap: timedelta | float | None = None,
        jitter: float = 0.25,
    ) -> None:
        first = check_wait("first in Backoff(…)", first, YEAR)
        values = {
            "first": first,
            "factor": _number("factor in Backoff(…)", factor, 1.0, 1_000_000.0),
            "cap": max(_CAP, first) if cap is None else check_wait("cap in Backoff(…)", cap, YEAR),
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
        raise BadInput(f"{what} must be a number from {least:g} to {most:g}, not {shown(number)}")
    if not least <= number <= most:  # also true for NaN
        raise BadInput(f"{what} must be between {least:g} and {most:g}, not {shown(number)}")
    return float(number)


class PayloadMismatch(BadInput):
    """A payload that does not fit the parameters of the function.

    `by_name`: a field is missing or unknown, for example because other code enqueued it.
    """

    def __init__(self, message: str, *, by_name: bool) -> None:
        super().__init__(message)
        self.by_name = by_name


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of a job type; options of a single job go before them."""

    priority: int = DEFAULT_PRIORITY
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    timeout: timedelta | None = None
    run: Run | None = None
    backoff: Backoff = Backoff()
    retry_on: ExceptionTypes = (Exception,)
    fail_on: ExceptionTypes = ()
    label: str | None = None  # names one job in lists: "{order_id}"
    queue: str = DEFAULT_QUEUE  # a name for a set of types
    unique: UniqueRule | None = None
    expires: timedelta | None = None  # cancelled if not started so long after it is due
    keys: KeyRule = KeyRule()


class Handler:
    """A registered function: how to call it, and how to read and write its payload."""

    def __init__(
        self, function: Callable[..., Any], context: type, *, name: str | None = None, rules: Rules
    ) -> None:
        if isinstance(registered := getattr(function, "handler", None), Handler):
            raise BadInput(
                f"{registered.where} is registered as job type {registered.job_type!r} already: "
                "register its .function to add another name"
            )
        self.function: Callable[..., Any] = check_function(function)
        self.job_type: str = check_job_type(name if name is not None else function.__name__)
        self.rules = rules
        self._what = f"the payload of {self.job_type}"
        self.run: Run = _run_mode(function, rules.run)
        if self.run == "process":
            check_top_level(function)
        self.async_without_timeout: bool = self.run == "async" and rules.timeout is None
        self.thread_without_timeout: bool = self.run == "thread" and rules.timeout is None
        self.ordered: bool = rules.keys.ordered
        self.context_name: str | None
        parameters, self.context_name = _parameters(function, context)
        self._fields = tuple(parameters)
        self._struct = _struct(function, self.job_type, parameters)
        self._decoder = _decoder(function, self._struct, parameters)
        self._parameters = parameters
        self.call: Callable[[msgspec.Struct, object], Any] = _caller(
            function, parameters, self.context_name
        )
        if rules.unique is not None:
            check_parameter(rules.unique, self._fields, self.job_type)
        if isinstance(rules.keys.key, str) and rules.keys.key not in self._fields:
            raise BadInput(
                f"key={rules.keys.key!r} is no parameter of {self.job_type}: "
                f"its parameters are {', '.join(self._fields) or 'none'}"
            )
        if rules.label is not None:
            check_label(rules.label, self.job_type, self._fields)

    @property
    def where(self) -> str:
        """Module and name of the function, for error messages."""
        return f"{self.function.__module__}.{self.function.__qualname__}"

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the arguments of the payload."""
        return self._fields

    @cached_property
    def parameters(self) -> list[Parameter]:
        """The arguments of the payload, for programs that do not have the function."""
        return describe_parameters(self._parameters)

    @cached_property
    def signature(self) -> str:
        """A fingerprint of the parameters and their types."""
        return fingerprint(self._struct, self.parameters)

    @cached_property
    def returns(self) -> ResultType:
        """The return type of the function, to decode results."""
        return ResultType(self.function)

    def encode(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> str:
        """Encode the arguments of a call as payload; refuses arguments that do not fit."""
        try:
            named = self._named(args, kwargs) if args else kwargs
            arguments = self._struct(**named)
        except TypeError as error:
            raise BadInput(f"{self.job_type}: {error}") from None
        data = payload.encode(arguments, self._what)
        self.decode(data)
        return data

    def key_of(self, data: str) -> str | None:
        """Make the concurrency key of an encoded payload; None: the job has no key."""
        if self.rules.keys.key is None:
            return None
        values = zip(self._fields, astuple(self.decode(data)), strict=True)
        return key_of(self.rules.keys, self.job_type, dict(values))

    def _named(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object]:
        """Give positional arguments their names."""
        if len(args) > len(self._fields):
            raise BadInput(f"{self.job_type} takes {len(self._fields)} arguments, got {len(args)}")
        named = dict(zip(self._fields, args, strict=False))
        if twice := named.keys() & kwargs.keys():
            raise BadInput(f"{self.job_type} got argument {min(twice)!r} twice: give it once")
        return {**named, **kwargs}

    def decode(self, data: str) -> msgspec.Struct:
        """Decode a payload into the function's arguments; raises BadInput if it does not fit."""
        try:
            return self._decoder.decode(data)
        except ValueError as error:  # errors of msgspec and pydantic are ValueErrors
            message = reason_of(error)
            raise PayloadMismatch(
                f"the payload does not fit {self.job_type}: {message}",
                by_name=_is_about_names(error, message),
            ) from None
        except Exception as error:  # raised by the checks of a user's type
            raise BadInput(
                f"the payload does not fit {self.job_type}: {describe(error)}"
            ) from error


def _is_about_names(error: ValueError, message: str) -> bool:
    """Whether a field is missing or unknown, rather than a value wrong."""
    if "missing required field" in message or "contains unknown field" in message:
        return True
    details = getattr(error.__cause__, "errors", None)  # of a pydantic error
    if not callable(details):
        return False
    kinds = {detail.get("type") for detail in cast("list[dict[str, Any]]", details())}
    return bool(kinds) and kinds <= {"missing", "extra_forbidden"}


def check_job_type(name: str) -> str:
    """Refuse a name that the database would refuse."""
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"a job type must be text, not {type(name).__name__}")
    if not 1 <= len(name) <= 200:
        raise BadInput(f"a job type must have 1 to 200 characters, this one has {len(name)}")
    if any(ord(c) < 32 or 127 <= ord(c) < 160 for c in name):
        raise BadInput(f"a job type must have no control characters, this one does: {name!r}")
    if any(0xD800 <= ord(c) < 0xE000 for c in name):
        raise BadInput("a job type must be text, this one has half a surrogate pair: remove it")
    return name


def _run_mode(function: Callable[..., Any], run: Run | None) -> Run:
    is_async = inspect.iscoroutinefunction(function)
    if run is None:
        return "async" if is_async else "thread"
    if run not in typing.get_args(Run):
        raise BadInput(f'run must be "async", "thread" or "process", not {run!r}')
    if run == "async" and not is_async:
        raise BadInput(f"{function.__qualname__} is a plain function: run it as thread or process")
    if run == "thread" and is_async:
        raise BadInput(f"{function.__qualname__} is async: run it as async or process")
    return run


def _parameters(
    function: Callable[..., Any], context: type
) -> tuple[dict[str, inspect.Parameter], str | None]:
    """Return the parameters of the payload, and the name of the context parameter."""
    hints = _hints(function)
    parameters: dict[str, inspect.Parameter] = {}
    context_name: str | None = None
    for position, (name, parameter) in enumerate(parameters_of(function).items()):
        if parameter.kind in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
            parameter.POSITIONAL_ONLY,
        ):
            raise BadInput(
                f"{function.__qualname__}: a payload has named arguments only: replace *args, "
                f"**kwargs and positional-only parameters by named ones ({parameter})"
            )
        hint = hints.get(name, Any)
        if isinstance(hint, type) and issubclass(hint, context):
            if context_name is not None:
                raise BadInput(
                    f"{function.__qualname__}: {context_name} and {name} are both annotated "
                    f"{context.__name__}: remove one of them"
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
        parameters[name] = parameter.replace(annotation=hint)
    return parameters, context_name


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise BadInput(
            f"{function.__qualname__} has an annotation with an unknown name: {error}. "
            "Import the name where the function is defined, not only for type checking."
        ) from None
    except Exception as error:
        raise BadInput(
            f"{function.__qualname__} has an annotation that is not a type: {describe(error)}"
        ) from None


def _parts(hint: object) -> tuple[object, ...]:
    """Return the members of a union; none for another type."""
    is_union = typing.get_origin(hint) in (typing.Union, UnionType)
    return typing.get_args(hint) if is_union else ()


def _decoder(
    function: Callable[..., Any],
    struct: type[msgspec.Struct],
    parameters: Mapping[str, inspect.Parameter],
) -> msgspec.json.Decoder[msgspec.Struct]:
    """Make the decoder of a payload; the error names the parameter that cannot be decoded."""
    try:
        return payload.decoder_for(struct)
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
    message = reason_of(reason).partition("\n")[0].removesuffix(" is not supported")
    shown_type = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    how = (
        "JSON cannot tell its members apart: use one of them alone, or Any and distinguish them "
        "in the function"
        if _parts(annotation) or "union" in message.lower()
        else "use a type that JSON has, or Any"
    )
    return BadInput(
        f"{function.__qualname__}: {name}: {shown_type} cannot be decoded from JSON: "
        f"{how} ({message})"
    )


def _caller(
    function: Callable[..., Any],
    parameters: Mapping[str, inspect.Parameter],
    context_name: str | None,
) -> Callable[[msgspec.Struct, object], Any]:
    """Make the call of a function with decoded arguments; an async one returns a coroutine."""

    def call_by_name(arguments: msgspec.Struct, context: object) -> Any:
        named = {name: getattr(arguments, name) for name in parameters}
        if context_name is not None:
            named[context_name] = context
        return function(**named)

    def call_without_context(arguments: msgspec.Struct, context: object) -> Any:
        return function(*astuple(arguments))

    def call_with_context_first(arguments: msgspec.Struct, context: object) -> Any:
        return function(context, *astuple(arguments))

    if any(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters.values()):
        return call_by_name
    if context_name is None:
        return call_without_context
    context_first = context_name == next(iter(parameters_of(function)))
    return call_with_context_first if context_first else call_by_name


def _struct(
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
