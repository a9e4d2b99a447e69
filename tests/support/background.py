"""Background: run a call in a thread, and get its result or its error."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from tests.support.waiting import DEADLINE

T = TypeVar("T")


class BackgroundCall(Generic[T]):
    """A call that runs in a thread of its own."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._results: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._results.append(self._call())
        except BaseException as error:
            self._error = error

    @property
    def over(self) -> bool:
        return not self._thread.is_alive()

    def problem(self) -> BaseException | None:
        """Wait until the call ends; returns its error, or None."""
        self._thread.join(DEADLINE)
        assert self.over, "the call did not end"
        return self._error

    def result(self) -> T:
        """Wait until the call ends; returns its result or raises its error."""
        if (problem := self.problem()) is not None:
            raise problem
        return self._results[0]
