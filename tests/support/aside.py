"""Aside: let another session do something at the same time, and hear how it went."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from tests.support.database import DEADLINE

T = TypeVar("T")


class Aside(Generic[T]):
    """A call under way in a thread of its own."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._answer: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._answer.append(self._call())
        except BaseException as error:
            self._error = error

    @property
    def over(self) -> bool:
        return not self._thread.is_alive()

    def problem(self) -> BaseException | None:
        """Wait for the call to end; returns its error, if it had one."""
        self._thread.join(DEADLINE)
        assert self.over, "the call did not end"
        return self._error

    def result(self) -> T:
        """Wait for the call to end; returns its answer or raises its error."""
        if (problem := self.problem()) is not None:
            raise problem
        return self._answer[0]
