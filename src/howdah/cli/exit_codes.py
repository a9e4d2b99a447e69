"""Exit codes: what the exit code of a command means, and which one an error has."""

from __future__ import annotations

from enum import IntEnum

import click

from howdah.errors import (
    BadInput,
    EmbeddedUnavailable,
    HowdahError,
    JobNotFound,
    NotAllowed,
    ReadOnly,
    SchemaError,
    Unreachable,
)


class ExitCode(IntEnum):
    """The exit codes of all commands."""

    OK = 0
    FAILED = 1  # the job failed or was cancelled, or not everything that was asked for was done
    USAGE = 2  # wrong usage, or a job that cannot be enqueued
    NOT_FOUND = 3
    DATABASE = 4  # unreachable, read-only, not allowed, or no embedded server could be started
    SCHEMA = 5  # missing, older or newer than this code
    INTERRUPTED = 130  # Ctrl-C


def exit_code_for(error: HowdahError) -> ExitCode:
    """Return the exit code of an error."""
    match error:
        case BadInput():
            return ExitCode.USAGE
        case JobNotFound():
            return ExitCode.NOT_FOUND
        case Unreachable() | ReadOnly() | NotAllowed() | EmbeddedUnavailable():
            return ExitCode.DATABASE
        case SchemaError():
            return ExitCode.SCHEMA
        case _:
            return ExitCode.FAILED


def exit_with(code: ExitCode) -> None:
    """End the command with this exit code; `OK` lets it go on to its end."""
    if code is not ExitCode.OK:
        click.get_current_context().exit(code)
