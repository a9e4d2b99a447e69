"""Import check: check that a child process can import the handlers, when a worker starts.

A child imports the module of a handler and looks the function up by its name. Refused are functions
that it cannot find, or could find only by running the whole program again.
"""

from __future__ import annotations

import ast
import inspect
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from howdah.errors import BadInput
from howdah.handler import Handler

IMPORTED_MAIN = "__howdah_main__"  # the name under which a child imports the program


def check_process_handlers(handlers: Iterable[Handler]) -> None:
    """Refuse process handlers that a child could not find."""
    for handler in handlers:
        if handler.run == "process":
            _check(handler)


def module_name(function: Any) -> str:
    """Return the module that a child imports; with `python -m` it is not `__main__`."""
    name: str = function.__module__
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec.name if name == "__main__" and spec is not None else name


def main_file() -> str | None:
    """Return the file of the program: handlers that are defined there have module `__main__`."""
    main = sys.modules.get("__main__")
    if main is None or getattr(main, "__spec__", None) is not None:
        return None
    file = getattr(main, "__file__", None)
    if not isinstance(file, str) or not Path(file).is_file():
        return None
    return str(Path(file).absolute())


def _check(handler: Handler) -> None:
    name = handler.function.__module__
    if name == IMPORTED_MAIN:
        raise BadInput(_no_guard(handler, "the code that starts a worker"))
    if name == "__main__" and module_name(handler.function) == name:
        if main_file() is None:
            raise BadInput(
                f'{handler.where} is run="process" and defined in a program that has no file '
                "(a prompt, a notebook, standard input): put it into a module and import it, or "
                "run it as a thread"
            )
        if (line := _line_without_guard()) is not None:
            raise BadInput(_no_guard(handler, f"line {line}"))
    if name == "__main__" and _defined_under_guard(handler):
        raise BadInput(
            f'{handler.where} is run="process" and defined under if __name__ == "__main__":, '
            "which does not run in a process: define the function above it"
        )
    _check_name(handler)


def _check_name(handler: Handler) -> None:
    function = handler.function
    target: Any = sys.modules.get(function.__module__)
    for part in function.__qualname__.split("."):
        target = getattr(target, part, None)
    if not isinstance(getattr(target, "handler", None), Handler):
        raise BadInput(
            f'{handler.where} is run="process", and a process would find '
            f"{'nothing' if target is None else 'no registered job'} under that name: write "
            f'@queue.job(run="process") above the function itself, as its uppermost decorator'
        )


def _no_guard(handler: Handler, what: str) -> str:
    return (
        f'{handler.where} is run="process" and defined in the program itself, which each process '
        f'imports. {what} would run there again: put it under if __name__ == "__main__":, or '
        "define the function in a module of its own"
    )


def _line_without_guard() -> int | None:
    """Return the current line of the program, unless it is under `if __name__ == "__main__"`."""
    frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
    frame = frames.get(threading.main_thread().ident or 0)
    main_frame = _frame_of_main(frame)
    file = main_file()
    if main_frame is None or file is None:
        return None
    line = main_frame.f_lineno
    statement = _around(line, _statements(file))
    return None if statement is None or _is_guard(statement) else line


def _defined_under_guard(handler: Handler) -> bool:
    """Whether only the program itself defines the function, and not a process that imports it."""
    code = getattr(inspect.unwrap(handler.function), "__code__", None)
    file = getattr(sys.modules["__main__"], "__file__", None)
    if code is None or file is None:
        return False
    with suppress(OSError):
        if Path(code.co_filename).samefile(file):
            statement = _around(code.co_firstlineno, _statements(file))
            return statement is not None and _is_guard(statement)
    return False


def _statements(file: str) -> list[ast.stmt]:
    """Return the top-level statements of a file; none if it cannot be read."""
    try:
        return ast.parse(Path(file).read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return []


def _around(line: int, statements: list[ast.stmt]) -> ast.stmt | None:
    """Find the statement that the line is part of."""
    for statement in statements:
        if statement.lineno <= line <= (statement.end_lineno or line):
            return statement
    return None


def _frame_of_main(frame: FrameType | None) -> FrameType | None:
    """Find the frame of the program's top-level statements."""
    names = vars(sys.modules["__main__"])
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals is names:
            return frame
        frame = frame.f_back
    return None


def _is_guard(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and any(
        isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(statement.test)
    )
