"""Connection leaks: which test opened each asyncpg connection, and whether it was closed.

asyncpg warns about an unclosed connection when Python collects it. That may happen during a later
test. So `ConnectionLeaks` records the test and the place that opened each connection, and
tests/conftest.py asks it after each test.

A connection has leaked if it is open after its event loop was closed, or if it was collected while
it was open. A loop that outlives the test may keep its connections: that of a `SyncQueue`, or of a
fixture with a larger scope.
"""

from __future__ import annotations

import inspect
import os
import sys
import weakref
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import asyncpg

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = str(ROOT / "src")
LIBRARIES = (str(Path(os.__file__).parent), sys.prefix, "<")  # the standard library, .venv
FRAMES = 4  # of the call stack, in a message


class Opened(NamedTuple):
    """One connection, and the test that opened it."""

    connection: weakref.ref[Any]
    test: str
    stack: str

    def __str__(self) -> str:
        return f"{self.test} opened a connection and did not close it. Opened at: {self.stack}"


class ConnectionLeaks:
    """Records every asyncpg connection of this process."""

    def __init__(self) -> None:
        self._opened: dict[int, Opened] = {}  # by id() of the connection
        self._collected: list[Opened] = []  # while they were open

    def install(self) -> None:
        """Record from now on. asyncpg's own warning is replaced: it does not name the test."""
        connection_class: Any = asyncpg.Connection
        original_init = connection_class.__init__

        def init(connection: Any, *args: Any, **options: Any) -> None:
            original_init(connection, *args, **options)
            self.record(connection)

        def delete(connection: Any) -> None:
            self.collect(connection)

        connection_class.__init__ = init
        connection_class.__del__ = delete

    def record(self, connection: Any) -> None:
        """Record that the current test has opened a connection."""
        test, _, _ = os.environ.get("PYTEST_CURRENT_TEST", "no test").rpartition(" (")
        self._opened[id(connection)] = Opened(
            weakref.ref(connection), test, _stack(inspect.currentframe())
        )

    def collect(self, connection: Any) -> None:
        """Replace `Connection.__del__`."""
        opened = self._opened.pop(id(connection), None)
        if connection.is_closed() or connection._protocol is None:
            return
        if opened is not None:
            self._collected.append(opened)
        if not connection._loop.is_closed():
            connection._pool_holder = None  # as asyncpg does: no message to its pool
            connection.terminate()

    def found(self) -> list[str]:
        """Return one line for each leak since the last call."""
        leaks = list[Opened]()
        for key, opened in list(self._opened.items()):
            connection = opened.connection()
            if connection is None:
                continue  # `collect` is called next
            if connection.is_closed():
                del self._opened[key]
            elif connection._loop.is_closed():
                del self._opened[key]
                leaks.append(opened)
            del connection
        leaks += self._collected
        self._collected = []
        return [str(leak) for leak in leaks]


def _stack(frame: FrameType | None) -> str:
    """Return the frames of the tests, or of the product if a task of its own has connected."""
    tests, product = list[str](), list[str]()
    while frame is not None:
        file, line = frame.f_code.co_filename, frame.f_lineno
        if file.startswith(PRODUCT):
            product.append(f"{file}:{line}")
        elif not file.startswith(LIBRARIES) and file != __file__:
            tests.append(f"{file}:{line}")
        frame = frame.f_back
    return ", called from ".join((tests or product)[:FRAMES]) or "unknown"
