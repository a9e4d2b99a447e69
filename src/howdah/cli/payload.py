"""Payload: read a payload from arguments, an option or stdin, and compare it with the type."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, cast

import click
import msgspec

from howdah import Queue
from howdah.errors import BadInput
from howdah.observe import misfits, registered_type, unregistered


def read_payload(data: str | None, arguments: Sequence[str]) -> dict[str, Any]:
    """Return the payload; KEY=VALUE overrides the JSON, and a VALUE may be JSON."""
    payload: dict[str, Any] = {}
    if data is not None:
        raw = sys.stdin.read() if data == "-" else data
        try:
            decoded = msgspec.json.decode(raw)
        except (msgspec.DecodeError, UnicodeError) as error:
            raise click.BadParameter(
                f"it is not valid JSON: {error}", param_hint="--data"
            ) from None
        if not isinstance(decoded, dict):
            raise click.BadParameter(
                'the payload must be a JSON object, such as {"key": "value"}', param_hint="--data"
            )
        payload.update(cast("dict[str, Any]", decoded))
    keys: set[str] = set()
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not key or not equals:
            raise click.BadParameter(
                f"{argument!r} is not KEY=VALUE: write such as width=320", param_hint="KEY=VALUE"
            )
        if key in keys:
            raise click.BadParameter(
                f"{key!r} is given twice: give it once", param_hint="KEY=VALUE"
            )
        keys.add(key)
        payload[key] = _value(value)
    return payload


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return text


async def check_payload(
    queue: Queue, job_type: str, payload: dict[str, Any], force: bool
) -> str | None:
    """Compare a payload with what workers have registered.

    Raises an error if no live worker can read it. Returns a warning for after the enqueue.
    """
    known = await registered_type(queue.store, job_type)
    if known is None:
        unknown = await unregistered(queue.store, job_type)
        return None if unknown is None else f"{unknown}. The job waits until one does."
    if known.parameters is None or not (problems := misfits(known.parameters, payload)):
        return None
    problem = f"the payload does not fit {job_type}: {'; '.join(problems)}"
    if known.live and not force:
        raise BadInput(f"{problem}. Correct it, or use --force to enqueue the job anyway.")
    return f"{problem}. The job waits for a worker that can read it."
