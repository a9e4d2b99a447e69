"""Outcome of: turn what a handler returned or raised into an outcome.

A handler may decide itself, with Retry, Snooze, Fail or Cancel. Otherwise the rules of its job type
decide. An error is stored as one line and a traceback; both are shortened.
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
from howdah.outcomes import (
    Cancel,
    Complete,
    Fail,
    Outcome,
    Retry,
    Snooze,
    Suspend,
    Suspended,
    check_after,
)
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

_Decision = Retry | Snooze | Fail | Cancel
_DONE = Complete()
_CACHED_FRAMES = 500

P = ParamSpec("P")


def _never_raises(decide: Callable[P, Outcome]) -> Callable[P, Outcome]:
    """Make a function return Fail instead of raising.

    Deciding about an outcome calls code of the user: the encoder of a result, the classes in
    `retry_on`, the backoff, the properties of an exception.
    """

    @wraps(decide)
    def decided(*args: P.args, **kwargs: P.kwargs) -> Outcome:
        try:
            return decide(*args, **kwargs)
        except BaseException as error:  # also SystemExit: it would end the event loop
            return outcome_of_internal_error("the outcome could not be decided", error)

    return decided


def outcome_of_internal_error(what: str, error: BaseException) -> Fail:
    """Make the outcome of an attempt for which howdah or code around the handler failed."""
    return Fail(shortened(f"{what}: {describe(error)}", LINE), traceback=traceback_of(error))


def outcome_of_value(value: object, handler: Handler, claim: Claim) -> Outcome:
    """Return the outcome of a returned value."""
    return _DONE if value is None else _outcome_of_value(value, handler, claim)


@_never_raises
def _outcome_of_value(value: object, handler: Handler, claim: Claim) -> Outcome:
    if isinstance(value, _Decision):
        return _checked_decision(value, handler, claim)
    try:
        return Complete(
            payload.encode(value, f"the result of {handler.job_type}", limit=payload.MAX_BYTES)
        )
    except BadInput as error:
        return Fail(reason_of(error))


@_never_raises
def outcome_of_error(error: BaseException, handler: Handler, claim: Claim) -> Outcome:
    """Return the outcome of an exception: the handler's own decision, or that of the rules."""
    if isinstance(error, _Decision):
        return _checked_decision(error, handler, claim)
    if isinstance(error, Suspended):
        return Suspend(error.blocked)
    members: list[BaseException] = []
    if issubclass(type(error), BaseExceptionGroup):
        members = list(members_of(error))
        suspended = [member for member in members if isinstance(member, Suspended)]
        if suspended and len(suspended) == len(members):  # raised in a TaskGroup
            return Suspend(tuple({key: None for each in suspended for key in each.blocked}))
        members = [member for member in members if not isinstance(member, Suspended)]
        if all(isinstance(member, _Decision) for member in members):  # raised in a TaskGroup
            return _checked_decision(cast("_Decision", members[0]), handler, claim)
    return outcome_of_failure(
        describe(error),
        traceback_of(error),
        retry=_is_retried(error, members, handler.rules),
        handler=handler,
        claim=claim,
    )


def _is_retried(error: BaseException, members: Sequence[BaseException], rules: Rules) -> bool:
    """Apply the rules. A group is retried if each of its members would be."""
    if any(isinstance(raised, rules.fail_on) for raised in (error, *members)):
        return False
    if isinstance(error, rules.retry_on):
        return True
    # Suspended is none of the members: the others decide
    return bool(members) and all(isinstance(member, rules.retry_on) for member in members)


@_never_raises
def outcome_of_failure(
    line: str, traceback: str | None, *, retry: bool, handler: Handler, claim: Claim
) -> Outcome:
    """Return the outcome of a failed attempt."""
    line = shortened(line, LINE)
    if traceback is not None:
        traceback = shortened_from_the_end(traceback, TRACEBACK)
    if not retry:
        return Fail(line, traceback=traceback)
    outcome = Retry(line, after=handler.rules.backoff.after(claim.attempt))
    outcome.traceback = traceback
    return outcome


@_never_raises
def outcome_of_timeout(handler: Handler, claim: Claim, note: str = "") -> Outcome:
    """Return the outcome of an attempt that took too long."""
    return outcome_of_failure(
        f"timed out after {handler.rules.timeout}{note}",
        None,
        retry=issubclass(TimeoutError, handler.rules.retry_on)
        and not issubclass(TimeoutError, handler.rules.fail_on),
        handler=handler,
        claim=claim,
    )


def traceback_of(error: BaseException) -> str:
    """Format a traceback as Python does, from the handler's frame on.

    The `str` of an exception may raise; then only the frames are formatted.
    """
    try:
        text = _traceback_of(error)
    except BaseException as format_error:
        try:
            frames = "".join(tracebacks.format_tb(error.__traceback__))
        except BaseException:
            frames = ""
        cause = describe(format_error)
        text = f"{frames}{name_of(type(error))} (not written in full: {cause})\n"
    return shortened_from_the_end(text, TRACEBACK)


def _traceback_of(error: BaseException) -> str:
    # A handler often fails at the same line. The text of each frame is cached, because to read it
    # takes longer than everything else about an attempt.
    frames = _own_frames(error)
    if not _is_plain(error):
        return "".join(tracebacks.format_exception(type(error), error, frames))
    lines = ["Traceback (most recent call last):\n"] if frames is not None else []
    seen: set[CodeType] = set()
    while frames is not None:
        code = frames.tb_frame.f_code
        if code in seen:  # a recursion, which Python formats in a shorter way
            return "".join(tracebacks.format_exception(type(error), error, _own_frames(error)))
        seen.add(code)
        lines.append(_frame_as_text(frames))
        frames = frames.tb_next
    lines.extend(tracebacks.format_exception_only(error))
    return "".join(lines)


def _is_plain(error: BaseException) -> bool:
    """Whether the traceback has only the frames and the exception itself."""
    return (
        error.__cause__ is None
        and (error.__context__ is None or error.__suppress_context__)
        # for these Python adds suggestions or nested tracebacks
        and not isinstance(error, NameError | AttributeError | ImportError | BaseExceptionGroup)
    )


_frame_texts: dict[tuple[CodeType, int], str] = {}


def _frame_as_text(frame: TracebackType) -> str:
    position = (frame.tb_frame.f_code, frame.tb_lasti)
    text = _frame_texts.get(position)
    if text is None:
        text = "".join(tracebacks.extract_tb(frame, limit=1).format())
        if len(_frame_texts) >= _CACHED_FRAMES:
            _frame_texts.clear()
        _frame_texts[position] = text
    return text


def _own_frames(error: BaseException) -> TracebackType | None:
    """Leave out the frames above the handler: they are the same in every traceback."""
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None:
        module = str(frames.tb_frame.f_globals.get("__name__"))
        if not module.startswith(("howdah.run.", "howdah.handler", "asyncio.")):
            break
        frames = frames.tb_next
    return frames


def _checked_decision(outcome: _Decision, handler: Handler, claim: Claim) -> Outcome:
    """Copy and check a handler's decision: its attributes may have been changed."""
    reason = reason_from(outcome.reason)
    if isinstance(outcome, Retry):
        after = outcome.after
        if after is None:
            after = handler.rules.backoff.after(claim.attempt)
        retry = Retry(reason, after=check_after(outcome, after))
        retry.traceback = _own_traceback(outcome.traceback)
        return retry
    if isinstance(outcome, Snooze):
        return Snooze(check_after(outcome, outcome.after), reason)
    if isinstance(outcome, Fail):
        return Fail(reason, traceback=_own_traceback(outcome.traceback))
    return Cancel(reason)


def _own_traceback(text: object) -> str | None:
    return None if text is None else shortened_from_the_end(_text(text), TRACEBACK)


def _text(value: object) -> str:
    return value if isinstance(value, str) else reason_of(value)
