"""Load: find the queue that `module:attribute` names.

Comes before  worker.py

The current directory comes onto the path, behind the standard library and before installed
packages: no file in it stands for a module of Python's, and all of our own are imported by then.
What is wrong with the name is told in one line; what is wrong inside the module is its author's,
who gets the traceback.
"""

from __future__ import annotations

import importlib
import os
import site
import sys
import traceback
from types import ModuleType
from typing import NoReturn

import click

from howdah import Queue
from howdah.errors import BadInput, HowdahError
from howdah.text.printable import clean


def load_queue(target: str) -> Queue:
    """Import the module and return its queue."""
    module_name, colon, attribute = target.partition(":")
    if not module_name or not colon or not attribute:
        raise BadInput(f"say module:attribute, such as app:queue, not {target!r}")
    if module_name.endswith(".py") or "/" in module_name:
        dotted = module_name.removesuffix(".py").replace("/", ".").strip(".")
        raise BadInput(f"{module_name!r} is a file; name the module: {dotted}:{attribute}")
    module = _module(module_name)
    found: object = module
    for name in attribute.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise BadInput(f"{module_name} has no attribute {attribute!r}{_hint(module)}") from None
    # a queue for programs without asyncio carries the queue that does the work
    found = getattr(found, "asynchronous", found)
    if not isinstance(found, Queue):
        kind = type(found).__name__
        raise BadInput(f"{target} is not a Queue but of type {kind}{_hint(module)}")
    if not found.handlers:
        raise BadInput(
            f"{target} has no jobs: register functions with @{attribute}.job, "
            "and import the modules they are in"
        )
    return found


def _module(name: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(_before_packages(), here)
    try:
        return importlib.import_module(name)
    except HowdahError:
        raise  # says in one line what is wrong
    except ModuleNotFoundError as error:
        if error.name is not None and (error.name == name or name.startswith(f"{error.name}.")):
            raise BadInput(f"there is no module {name!r} here in {here}") from None
        _show_their_error(name, error)
    except Exception as error:
        _show_their_error(name, error)


def _before_packages() -> int:
    """Tell where the first folder of installed packages stands on the path."""
    packages = {*site.getsitepackages(), site.getusersitepackages()}
    return next((at for at, place in enumerate(sys.path) if place in packages), len(sys.path))


def _show_their_error(name: str, error: Exception) -> NoReturn:
    """Print the traceback from the first line of the user's own code on."""
    trace = error.__traceback__
    while trace is not None and _is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    lines = traceback.format_exception(type(error), error, trace)
    click.echo(clean("".join(lines)), err=True, nl=False)
    raise BadInput(f"cannot import {name}: see above") from None


def _hint(module: ModuleType) -> str:
    """Name the queues that are there."""
    queues = [name for name, value in vars(module).items() if isinstance(value, Queue)]
    if not queues:
        return ""
    return f"; there is {' and '.join(f'{module.__name__}:{name}' for name in queues)}"


def _is_ours(filename: str) -> bool:
    return filename == __file__ or "importlib" in filename
