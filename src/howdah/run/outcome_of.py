"""Attempt: how an attempt ended, as a value.

A handler returns or raises; here that becomes an outcome: its own say if it had one, else by
the rules of its job type. Errors are kept as one readable line and a traceback, both cut
to a length the database is glad to keep.
"""

from __future__ import annotations

import traceback as tracebacks
from collections.abc import Callable, Sequence
from functools import wraps
from types import CodeType, TracebackType
from typing import ParamSpec, cast

from howdah import payload
from howdah.errors import BadInput
from howdah.handler import Handler, Rules
from howdah.job import Claim
from howdah.outcomes import Cancel, Complete, Fail, Outcome, Retry, Snooze, check_after
from howdah.text.reasons import (
    LINE,
    TRACEBACK,
    describe,
    members_of,
    name_of,
    reason_from,
    reason_of,
    shortened,
    shortened_from_the_end,
)

_Say = Retry | Snooze | Fail | Cancel
_DONE = Complete()
_FRAMES = 500  # places in programs that are remembered as text

P = ParamSpec("P")


def _surely(decide: Callable[P, Outcome]) -> Callable[P, Outcome]:
    """Make a decision that cannot fail: an attempt whose outcome cannot be decided has failed.

    Deciding calls code of the user's: the encoder of a result, the classes in `retry_on`, the
    backoff, the properties of an exception.
    """

    @wraps(decide)
    def decided(*args: P.args, **kwargs: P.kwargs) -> Outcome:
        try:
            return decide(*args, **kwargs)
        except BaseException as error:  # SystemExit too: it must not leave the event loop
            return outcome_of_trouble("the outcome could not be decided", error)

    return decided


def outcome_of_trouble(what: str, error: BaseException) -> Fail:
    """Make the outcome of an attempt whose end cannot be told as it should be."""
    return Fail(shortened(f"{what}: {describe(error)}", LINE), traceback=traceback_of(error))


def outcome_of_value(value: object, handler: Handler, claim: Claim) -> Outcome:
    """Judge what a handler returned."""
    return _DONE if value is None else _outcome_of_value(value, handler, claim)


@_surely
def _outcome_of_value(value: object, handler: Handler, claim: Claim) -> Outcome:
    if isinstance(value, _Say):
        return _said(value, handler, claim)
    try:
        return Complete(
            payload.encode(value, f"the result of {handler.job_type}", limit=payload.MAX_BYTES)
        )
    except BadInput as error:
        return Fail(reason_of(error))


@_surely
def outcome_of_error(error: BaseException, handler: Handler, claim: Claim) -> Outcome:
    """Judge what a handler raised: by its own say, or by the rules."""
    if isinstance(error, _Say):
        return _said(error, handler, claim)
    members: list[BaseException] = []
    if issubclass(type(error), BaseExceptionGroup):
        members = list(members_of(error))
        if all(isinstance(one, _Say) for one in members):  # raised inside a TaskGroup
            return _said(cast("_Say", members[0]), handler, claim)
    return outcome_of_failure(
        describe(error),
        traceback_of(error),
        retry=_is_worth_another(error, members, handler.rules),
        handler=handler,
        claim=claim,
    )


def _is_worth_another(error: BaseException, members: Sequence[BaseException], rules: Rules) -> bool:
    """Judge by the rules. A group is retried if each of its members would be, raised alone."""
    if isinstance(error, rules.fail_on) or any(isinstance(one, rules.fail_on) for one in members):
        return False
    if isinstance(error, rules.retry_on):
        return True
    return bool(members) and all(isinstance(one, rules.retry_on) for one in members)


@_surely
def outcome_of_failure(
    line: str, traceback: str | None, *, retry: bool, handler: Handler, claim: Claim
) -> Outcome:
    """Make the outcome of an attempt that failed."""
    line = shortened(line, LINE)
    if traceback is not None:
        traceback = shortened_from_the_end(traceback, TRACEBACK)
    if not retry:
        return Fail(line, traceback=traceback)
    outcome = Retry(line, after=handler.rules.backoff.after(claim.attempt))
    outcome.traceback = traceback
    return outcome


@_surely
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

    What an exception says of itself may raise; then the frames alone are written.
    """
    try:
        written = _traceback_of(error)
    except BaseException as trouble:
        try:
            frames = "".join(tracebacks.format_tb(error.__traceback__))
        except BaseException:
            frames = ""
        written = f"{frames}{name_of(type(error))} (not written in full: {describe(trouble)})\n"
    return shortened_from_the_end(written, TRACEBACK)


def _traceback_of(error: BaseException) -> str:
    # A handler that fails a thousand times fails in the same place. The text of a place is
    # remembered: to find it takes longer than all else about an attempt.
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


def _said(outcome: _Say, handler: Handler, claim: Claim) -> Outcome:
    """Copy what a handler decided, checked: it may have changed the outcome since it was made."""
    reason = reason_from(outcome.reason)
    if isinstance(outcome, Retry):
        after = outcome.after
        if after is None:
            after = handler.rules.backoff.after(claim.attempt)
        said = Retry(reason, after=check_after(outcome, after))
        said.traceback = _own_traceback(outcome.traceback)
        return said
    if isinstance(outcome, Snooze):
        return Snooze(check_after(outcome, outcome.after), reason)
    if isinstance(outcome, Fail):
        return Fail(reason, traceback=_own_traceback(outcome.traceback))
    return Cancel(reason)


def _own_traceback(text: object) -> str | None:
    return None if text is None else shortened_from_the_end(_text(text), TRACEBACK)


def _text(value: object) -> str:
    return value if isinstance(value, str) else reason_of(value)
