"""Report checks: check the progress, checkpoints and events that a handler reports.

Comes before  reports.py              which gathers them in the worker
              process/child_main.py   which sends them to the worker
"""

from __future__ import annotations

from howdah import payload
from howdah.errors import BadInput
from howdah.text.reasons import reason_of

MAX_EVENT_BYTES = 64 * 1024
MAX_KIND = 200
MAX_STAGE = 1000
_NUMBER = (int, float)  # a constant, because handlers call this often


def check_progress(percent: float | None, stage: str | None) -> tuple[int | None, str | None]:
    """Return a progress report as it is stored; refuse bad values."""
    if percent is not None:
        if (
            not isinstance(percent, _NUMBER)  # pyright: ignore[reportUnnecessaryIsInstance]
            or isinstance(percent, bool)
            or not 0 <= percent <= 100  # also true for NaN
        ):
            raise BadInput(f"progress must be from 0 to 100, not {_shown(percent)}")
        percent = int(percent)
    if stage is not None:
        checked = _text(stage, MAX_STAGE)
        if checked is None:
            raise BadInput(
                "a stage must be text of up to 1000 characters without NUL or half surrogate pairs"
            )
        stage = checked
    return percent, stage


def check_event(kind: str, data: object) -> tuple[str, str]:
    """Return the kind of an event and its data as JSON; refuse bad values."""
    checked = _text(kind, MAX_KIND)
    if not checked:
        raise BadInput(
            f"the kind of an event must be text of 1 to 200 characters, not {_shown(kind)}"
        )
    return checked, payload.encode(data, f"the event {checked!r}", limit=MAX_EVENT_BYTES)


def check_checkpoint(data: object) -> str:
    """Return a checkpoint as JSON; refuses one that is too large or not JSON."""
    return payload.encode(data, "the checkpoint", limit=payload.MAX_BYTES)


def _text(text: object, longest: int) -> str | None:
    """Return text as a plain str; None if it is not text, too long, or cannot be stored."""
    if type(text) is not str:
        if not isinstance(text, str):
            return None
        text = str.__str__(text)  # a subclass may override __str__
    return text if len(text) <= longest and payload.is_text(text) else None


def _shown(value: object) -> str:
    try:
        return reason_of(repr(value))
    except Exception:
        return reason_of(value)
