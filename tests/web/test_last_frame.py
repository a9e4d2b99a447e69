"""The last frame of a traceback says where an error was raised."""

from __future__ import annotations

import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as some

from howdah.web.last_frame import LINES, LONGEST, last_frame


def written(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def test_it_is_the_innermost_call_with_its_line_of_code() -> None:
    with pytest.raises(ValueError, match="abc") as raised:
        int("abc")
    frame = last_frame(written(raised.value))
    assert frame is not None
    place, code, *_ = frame.splitlines()
    assert place.startswith(f'File "{__file__}", line ')
    assert code.strip() == 'int("abc")'


def test_of_a_group_it_is_the_innermost_of_its_last_error() -> None:
    def broken() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError) as raised:
        broken()
    frame = last_frame(written(ExceptionGroup("several", [raised.value])))
    assert frame is not None
    assert "in broken" in frame
    assert frame.splitlines()[1].strip() == 'raise KeyError("x")'


def test_where_there_is_none_nothing_is_shown() -> None:
    assert last_frame(None) is None
    assert last_frame("ValueError: no") is None


@given(some.text() | some.text(alphabet=' |+\n\tFile "x'))
def test_any_text_gives_a_few_lines_at_most(said: str) -> None:
    frame = last_frame(said) or ""
    assert len(frame) <= LONGEST
    assert len(frame.splitlines()) <= LINES
