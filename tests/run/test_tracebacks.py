"""The stored traceback has Python's format and begins at the handler's own frames."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import NoReturn

import pytest

from howdah.run import outcome_of
from howdah.run.outcome_of import traceback_of


def plain() -> NoReturn:
    raise ValueError("in a line")


def deep() -> NoReturn:
    for _ in range(2):
        (lambda: plain())()
    raise AssertionError


def caused() -> NoReturn:
    try:
        plain()
    except ValueError as error:
        raise RuntimeError("because of it") from error


def during_handling() -> NoReturn:
    try:
        plain()
    finally:
        raise LookupError("while that was handled")


def hidden() -> NoReturn:
    try:
        plain()
    except ValueError:
        raise LookupError("without the other") from None


def noted() -> NoReturn:
    error = ValueError("with a note")
    error.add_note("the note")
    raise error


def grouped() -> NoReturn:
    raise ExceptionGroup("two", [ValueError("one"), KeyError("other")])


def misspelt() -> NoReturn:
    print(plaim)  # type: ignore[name-defined]  # noqa: F821 # pyright: ignore
    raise AssertionError


def endless(depth: int = 9) -> NoReturn:
    if depth:
        endless(depth - 1)
    plain()


def in_code() -> NoReturn:
    compile("a b", "somewhere", "exec")
    raise AssertionError


@pytest.mark.parametrize(
    "raises",
    [plain, deep, caused, during_handling, hidden, noted, grouped, misspelt, endless, in_code],
)
def test_a_traceback_is_formatted_as_by_python(raises: Callable[[], NoReturn]) -> None:
    for _ in range(2):  # first without cached frames, then with them
        with pytest.raises(Exception) as caught:  # noqa: PT011 - any
            raises()
        error = caught.value
        assert traceback_of(error) == "".join(traceback.format_exception(error))


def test_an_error_that_was_never_raised_has_no_frames() -> None:
    assert traceback_of(ValueError("as a value")) == "ValueError: as a value\n"


def test_few_frames_are_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: dict[object, str] = {}
    monkeypatch.setattr(outcome_of, "_CACHED_FRAMES", 3)
    monkeypatch.setattr(outcome_of, "_frame_texts", texts)
    for raises in (plain, deep, noted):
        with pytest.raises(ValueError, match=r"in a line|with a note") as caught:
            raises()
        traceback_of(caught.value)
        assert 1 <= len(texts) <= 3
