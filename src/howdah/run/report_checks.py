"""Checks: what a handler may report of itself, refused where it says it.

Comes before  reports.py   which gathers what is kept, in the worker
              child.py     which sends it there, from a process of its own
"""

from __future__ import annotations

from howdah import payload
from howdah.errors import BadInput
from howdah.text.reasons import reason_of

MAX_EVENT_BYTES = 64 * 1024
MAX_KIND = 200
MAX_STAGE = 1000
_NUMBER = (int, float)  # made once: handlers call this often


def check_progress(percent: float | None, stage: str | None) -> tuple[int | None, str | None]:
    """Return what is kept of a progress report; refuse what cannot be."""
    if percent is not None:
        if (
            not isinstance(percent, _NUMBER)  # pyright: ignore[reportUnnecessaryIsInstance]
            or isinstance(percent, bool)
            or not 0 <= percent <= 100  # which NaN is not either
        ):
            raise BadInput(f"progress goes from 0 to 100, not {_shown(percent)}")
        percent = int(percent)
    if stage is not None:
        kept = _text(stage, MAX_STAGE)
        if kept is None:
            raise BadInput(
                "a stage is text of up to 1000 characters without NUL or half surrogate pairs"
            )
        stage = kept
    return percent, stage


def check_event(kind: str, data: object) -> tuple[str, str]:
    """Return the kind of an event and its data as JSON; refuse what cannot be kept."""
    kept = _text(kind, MAX_KIND)
    if not kept:
        raise BadInput(f"the kind of an event is text of 1 to 200 characters, not {_shown(kind)}")
    return kept, payload.encode(data, f"the event {kept!r}", limit=MAX_EVENT_BYTES)


def _text(text: object, longest: int) -> str | None:
    """Return exact text; None where it is none, or too long, or cannot be kept."""
    if type(text) is not str:
        if not isinstance(text, str):
            return None
        text = str.__str__(text)  # what a subclass holds, not what it says
    return text if len(text) <= longest and payload.is_text(text) else None


def _shown(value: object) -> str:
    try:
        return reason_of(repr(value))
    except Exception:
        return reason_of(value)
