"""Attempt: how an attempt ended, as a value.

A handler returns or raises; here that becomes an outcome: its own say if it had one, else by
the rules of its job type. Errors are kept as one readable line and a traceback, both cut
to a length the database is glad to keep.
"""

from __future__ import annotations

import traceback as tracebacks
from types import CodeType, TracebackType

from howdah import payload
from howdah.errors import BadInput
from howdah.handler import Handler
from howdah.job import Claim
from howdah.outcomes import Cancel, Complete, Fail, Outcome, Retry, Snooze

_Say = Retry | Snooze | Fail | Cancel
_DONE = Complete()
_LINE = 2_000
_TRACEBACK = 16_000
_FRAMES = 500  # places in programs that are remembered as text


def outcome_of_value(value: object, handler: Handler, claim: Claim) -> Outcome:
    """Judge what a handler returned."""
    if value is None:
        return _DONE
    if isinstance(value, _Say):
        return _with_backoff(value, handler, claim)
    try:
        return Complete(
            payload.encode(value, f"the result of {handler.job_type}", limit=payload.MAX_BYTES)
        )
    except BadInput as error:
        return Fail(str(error))


def outcome_of_error(error: BaseException, handler: Handler, claim: Claim) -> Outcome:
    """Judge what a handler raised: by its own say, or by the rules."""
    if isinstance(error, _Say):
        return _with_backoff(error, handler, claim)
    return outcome_of_failure(
        describe(error),
        traceback_of(error),
        retry=isinstance(error, handler.rules.retry_on)
        and not isinstance(error, handler.rules.fail_on),
        handler=handler,
        claim=claim,
    )


def outcome_of_failure(
    line: str, traceback: str | None, *, retry: bool, handler: Handler, claim: Claim
) -> Outcome:
    """Make the outcome of an attempt that failed."""
    if not retry:
        return Fail(shortened(line, _LINE), traceback=_tail(traceback))
    outcome = Retry(shortened(line, _LINE))
    outcome.traceback = _tail(traceback)
    return _with_backoff(outcome, handler, claim)


def outcome_of_timeout(handler: Handler, claim: Claim, aftermath: str = "") -> Outcome:
    """Make the outcome of an attempt that took too long."""
    return outcome_of_failure(
        f"timed out after {handler.rules.timeout}{aftermath}",
        None,
        retry=issubclass(TimeoutError, handler.rules.retry_on)
        and not issubclass(TimeoutError, handler.rules.fail_on),
        handler=handler,
        claim=claim,
    )


def traceback_of(error: BaseException) -> str:
    """Write a traceback as Python does, with the frames from the handler on.

    A handler that fails a thousand times fails in the same place. How a place reads is remembered:
    to find out takes longer than all else about an attempt.
    """
    frames = _own_frames(error)
    if not _is_plain(error):
        return "".join(tracebacks.format_exception(type(error), error, frames))
    lines = ["Traceback (most recent call last):\n"] if frames is not None else []
    seen: set[CodeType] = set()
    while frames is not None:
        code = frames.tb_frame.f_code
        if code in seen:  # it calls itself, which Python writes in a shorter way
            return "".join(tracebacks.format_exception(type(error), error, _own_frames(error)))
        seen.add(code)
        lines.append(_frame_as_text(frames))
        frames = frames.tb_next
    lines.extend(tracebacks.format_exception_only(error))
    return "".join(lines)


def _is_plain(error: BaseException) -> bool:
    """Whether nothing but its frames and itself is to be written."""
    return (
        error.__cause__ is None
        and (error.__context__ is None or error.__suppress_context__)
        # of these Python says what may have been meant, by what is in the frames
        and not isinstance(error, NameError | AttributeError | ImportError | BaseExceptionGroup)
    )


_texts: dict[tuple[CodeType, int], str] = {}


def _frame_as_text(frame: TracebackType) -> str:
    place = (frame.tb_frame.f_code, frame.tb_lasti)
    text = _texts.get(place)
    if text is None:
        text = "".join(tracebacks.extract_tb(frame, limit=1).format())
        if len(_texts) >= _FRAMES:
            _texts.clear()
        _texts[place] = text
    return text


def _own_frames(error: BaseException) -> TracebackType | None:
    """Leave out the frames that led to the handler: they are the same in every traceback."""
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None:
        module = str(frames.tb_frame.f_globals.get("__name__"))
        if not module.startswith(("howdah.run.", "howdah.handler", "asyncio.")):
            break
        frames = frames.tb_next
    return frames


def describe(error: BaseException) -> str:
    """Say in one line what went wrong."""
    said = str(error)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def shortened(text: str, limit: int) -> str:
    text = text.replace("\0", "").encode("utf-8", "replace").decode()
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _tail(text: str | None) -> str | None:
    if text is None:
        return None
    text = text.replace("\0", "").encode("utf-8", "replace").decode()
    return text if len(text) <= _TRACEBACK else f"…{text[-_TRACEBACK:]}"


def _with_backoff(outcome: _Say, handler: Handler, claim: Claim) -> _Say:
    if isinstance(outcome, Retry) and outcome.after is None:
        outcome.after = handler.rules.backoff.after(claim.attempt)
    return outcome
