"""Functions: check that an object can be registered as a job.

Comes before  handler.py   which reads the parameters of the function
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import MethodType
from typing import Any

from howdah.errors import BadInput
from howdah.text.reasons import name_of, shown


def check_function(function: object) -> Callable[..., Any]:
    """Return a function that can be a job; refuse others and say what to write instead."""
    for refuse in (_refuse_values, _refuse_objects, _refuse_methods, _refuse_generators):
        refuse(function)
    assert callable(function)
    return function


def check_top_level(function: Callable[..., Any]) -> None:
    """Refuse a function that a child process could not import by its name."""
    if "<locals>" in function.__qualname__:
        raise BadInput(
            f'{function.__qualname__} is defined inside a function: run="process" needs one at the '
            "top level of a module, where the process can import it. Move it there, or run it as "
            "a thread"
        )


def _refuse_values(function: object) -> None:
    """Refuse values that are not callable functions."""
    if isinstance(function, str):
        raise BadInput(
            f"@queue.job takes the name of a job type by keyword: write "
            f"@queue.job(name={shown(function)})"
        )
    if inspect.iscoroutine(function):
        function.close()  # else Python warns that it was never awaited
        raise BadInput(
            f"{function.__qualname__}() is a coroutine, not a function: register "
            f"{function.__qualname__} itself, without the ()"
        )
    if isinstance(function, staticmethod | classmethod):
        raise BadInput(
            f"{function.__qualname__}: write @staticmethod above @queue.job, not below it; "
            "a classmethod cannot be a job"
        )
    if not callable(function):
        raise BadInput(
            f"@queue.job registers a function, not {shown(function)}: write it above a def"
        )


def _refuse_objects(function: object) -> None:
    """Refuse callables without the name and annotations of a function."""
    instead = "write a function with def that calls it, and register that"
    if isinstance(function, functools.partial):
        raise BadInput(f"a functools.partial has no name and no annotations: {instead}")
    if isinstance(function, type):
        raise BadInput(f"{name_of(function)} is a class, not a function: {instead}")
    names = ("__name__", "__qualname__", "__module__")
    if not all(isinstance(getattr(function, name, None), str) for name in names):
        kind = name_of(type(function))
        raise BadInput(f"an object of {kind} has no name and no annotations: {instead}")
    if getattr(function, "__name__", "") == "<lambda>":
        raise BadInput(
            "a lambda has no name and no annotations: write a function with def, and register that"
        )


def _refuse_methods(function: object) -> None:
    """Refuse methods: a payload cannot hold the object."""
    name = getattr(function, "__qualname__", "")
    how = (
        "a payload cannot hold the object to call it on. Write a function outside the class, or "
        "put @staticmethod above @queue.job, leave self out, and create the object inside"
    )
    if isinstance(function, MethodType):
        raise BadInput(f"{name} is a method: {how}")
    outside, _, _ = name.rpartition(".")
    if outside and not outside.endswith("<locals>") and callable(function):  # in a class
        first = next(iter(parameters_of(function)), "")
        if first in ("self", "cls"):
            raise BadInput(f"{name} is a method, its first parameter is {first}: {how}")


def _refuse_generators(function: object) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise BadInput(
            f"{function.__qualname__} contains yield, so calling it runs nothing: return a list "
            "instead, or report each item with ctx.emit(…)"
        )


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function by name."""
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        name = getattr(function, "__qualname__", name_of(type(function)))
        raise BadInput(
            f"{name} does not show its parameters: write a function with def that calls it, "
            "and register that"
        ) from None
