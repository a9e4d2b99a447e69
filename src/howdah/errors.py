"""Errors: everything that howdah raises, as one tree.

HowdahError
├── BadInput              a wrong value; nothing was written           (also a ValueError)
│   ├── PayloadTooLarge   store the data elsewhere, queue a reference
│   └── DuplicateJobType  two functions registered under one name
├── SchemaError           the database does not hold the schema this code needs
│   ├── SchemaMissing     howdah was never installed there
│   ├── SchemaOlder       `howdah install` has to run
│   └── SchemaNewer       the howdah package has to be upgraded
├── Unreachable           no connection, no answer, or access denied   (also a ConnectionError)
├── ReadOnly              the server takes no writes: a standby, or set read-only
├── NotAllowed            the role lacks a privilege                   (also a PermissionError)
├── EmbeddedUnavailable   no DSN, and the embedded PostgreSQL could not be started
├── JobExists             `on_conflict="error"`: another job has the unique key
├── JobNotFound           a wrong id, or pruned after its retention    (also a LookupError)
├── JobFailed             `handle.result()` of a job that ended as failed
├── ResultDoesNotFit      `handle.result()` does not fit the annotation (also a ValueError)
├── JobCancelled          `handle.result()` of a job that ended as cancelled
├── JobEnded              a signal to a job that has ended
├── SignalTimeout         `ctx.wait_for()`: no signal came in time     (also a TimeoutError)
├── StepMismatch          the code of a handler does not fit a step that is stored
└── StaleLease            a settling call for an attempt that is no longer ours
"""

from __future__ import annotations

from uuid import UUID


class HowdahError(Exception):
    """The base class of all errors that howdah raises."""


class BadInput(HowdahError, ValueError): ...


class PayloadTooLarge(BadInput): ...


class DuplicateJobType(BadInput): ...


class SchemaError(HowdahError): ...


class SchemaMissing(SchemaError): ...


class SchemaOlder(SchemaError): ...


class SchemaNewer(SchemaError): ...


class Unreachable(HowdahError, ConnectionError): ...


class ReadOnly(HowdahError): ...


class NotAllowed(HowdahError, PermissionError): ...


class EmbeddedUnavailable(HowdahError): ...


class JobNotFound(HowdahError, LookupError):
    @classmethod
    def with_id(cls, id: UUID) -> JobNotFound:
        """Make the error that says that no job has this id."""
        return cls(
            f"there is no job {id}: the id is wrong, or the job was never committed, "
            "or it was pruned after its retention"
        )


class JobExists(HowdahError):
    """Another job has the unique key; `id` is that job, `handle` leads to it."""

    def __init__(self, message: str, id: UUID) -> None:
        super().__init__(message)
        self.id = id


class JobFailed(HowdahError):
    """A job ended as failed; `error` is the error of its last attempt."""

    def __init__(self, message: str, error: str | None = None) -> None:
        super().__init__(message)
        self.error = error


class ResultDoesNotFit(HowdahError, ValueError):
    """A result does not fit the return annotation of its function; `result` is the plain JSON."""

    def __init__(self, message: str, result: object = None) -> None:
        super().__init__(message)
        self.result = result


class JobCancelled(HowdahError): ...


class JobEnded(HowdahError): ...


class SignalTimeout(HowdahError, TimeoutError): ...


class StepMismatch(HowdahError): ...


class StaleLease(HowdahError): ...
