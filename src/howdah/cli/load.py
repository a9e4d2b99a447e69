"""Load: imports the queue that MODULE:QUEUE names.

The current directory is added to sys.path, after the standard library and before installed
packages: so a file in it cannot replace a module of Python. A wrong name is one line of error. An
error inside the module is shown with its traceback.
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
        raise BadInput(f"{target!r} is not MODULE:QUEUE: write such as app:queue")
    if module_name.endswith(".py") or "/" in module_name:
        dotted = module_name.removesuffix(".py").replace("/", ".").strip(".")
        raise BadInput(f"{module_name!r} is a file: name the module, {dotted}:{attribute}")
    module = _module(module_name)
    value: object = module
    for name in attribute.split("."):
        try:
            value = getattr(value, name)
        except AttributeError:
            raise BadInput(f"{module_name} has no attribute {attribute!r}{_hint(module)}") from None
    # a SyncQueue has the Queue as its attribute `asynchronous`
    value = getattr(value, "asynchronous", value)
    if not isinstance(value, Queue):
        kind = type(value).__name__
        raise BadInput(f"{target} is of type {kind}, not a Queue{_hint(module)}")
    if not value.handlers:
        raise BadInput(
            f"{target} has no job types: register functions with @{attribute}.job, "
            "and import the modules that contain them"
        )
    return value


def _module(name: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(_before_packages(), here)
    try:
        return importlib.import_module(name)
    except HowdahError:
        raise  # its message is enough
    except ModuleNotFoundError as error:
        if error.name is not None and (error.name == name or name.startswith(f"{error.name}.")):
            raise BadInput(
                f"there is no module {name!r} in {here}: correct the name, or run the command in "
                "the folder of your module"
            ) from None
        _show_module_error(name, error)
    except Exception as error:
        _show_module_error(name, error)


def _before_packages() -> int:
    """Return the position of the first folder of installed packages in sys.path."""
    packages = {*site.getsitepackages(), site.getusersitepackages()}
    return next((n for n, path in enumerate(sys.path) if path in packages), len(sys.path))


def _show_module_error(name: str, error: Exception) -> NoReturn:
    """Print the traceback, starting at the user's own code."""
    trace = error.__traceback__
    while trace is not None and _is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    lines = traceback.format_exception(type(error), error, trace)
    click.echo(clean("".join(lines)), err=True, nl=False)
    raise BadInput(f"cannot import {name}: correct the error above") from None


def _hint(module: ModuleType) -> str:
    """Return a hint that names the queues in the module."""
    queues = [name for name, value in vars(module).items() if isinstance(value, Queue)]
    if not queues:
        return ""
    return f"; the module has {' and '.join(f'{module.__name__}:{name}' for name in queues)}"


def _is_ours(filename: str) -> bool:
    return filename == __file__ or "importlib" in filename
