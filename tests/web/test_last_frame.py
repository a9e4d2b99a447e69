"""The last frame of a traceback shows where an error was raised."""

from __future__ import annotations

import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as some

from howdah.web.last_frame import LINES, MAX_LENGTH, last_frame


def traceback_of(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def test_the_last_frame_is_the_innermost_call_with_its_code() -> None:
    with pytest.raises(ValueError, match="abc") as raised:
        int("abc")
    frame = last_frame(traceback_of(raised.value))
    assert frame is not None
    location, code, *_ = frame.splitlines()
    assert location.startswith(f'File "{__file__}", line ')
    assert code.strip() == 'int("abc")'


def test_for_an_exception_group_it_is_the_innermost_call_of_the_last_error() -> None:
    def broken() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError) as raised:
        broken()
    frame = last_frame(traceback_of(ExceptionGroup("several", [raised.value])))
    assert frame is not None
    assert "in broken" in frame
    assert frame.splitlines()[1].strip() == 'raise KeyError("x")'


def test_text_without_a_frame_gives_none() -> None:
    assert last_frame(None) is None
    assert last_frame("ValueError: no") is None


@given(some.text() | some.text(alphabet=' |+\n\tFile "x'))
def test_any_text_gives_a_few_lines_at_most(text: str) -> None:
    frame = last_frame(text) or ""
    assert len(frame) <= MAX_LENGTH
    assert len(frame.splitlines()) <= LINES
