"""Errors: everything howdah raises, as one tree.

HowdahError
├── BadInput              cannot be queued; nothing was written        (also a ValueError)
│   ├── PayloadTooLarge   store the data elsewhere, queue a reference
│   └── DuplicateJobType  two functions registered under one name
├── SchemaError           the database does not hold the schema this code needs
│   ├── SchemaMissing     howdah was never installed there
│   ├── SchemaOlder       `howdah install` has to run
│   └── SchemaNewer       the howdah package has to be upgraded
├── Unreachable           no connection, or not let in                 (also a ConnectionError)
├── ReadOnly              the server takes no writes: a standby, or set read-only
├── NotAllowed            the role lacks a privilege                   (also a PermissionError)
├── EmbeddedUnavailable   no DSN, and no PostgreSQL that could be started instead
├── JobNotFound           a wrong id, or pruned after its retention    (also a LookupError)
├── JobFailed             `handle.result()` of a job that ended as failed
├── ResultDoesNotFit      `handle.result()` of what is not as annotated (also a ValueError)
├── JobCancelled          `handle.result()` of a job that ended as cancelled
└── StaleLease            a settling call for an attempt that is no longer ours
"""

from __future__ import annotations


class HowdahError(Exception):
    """Whatever howdah has to complain about."""


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


class JobNotFound(HowdahError, LookupError): ...


class JobFailed(HowdahError):
    """A job ended as failed; `error` is what its last attempt said."""

    def __init__(self, message: str, error: str | None = None) -> None:
        super().__init__(message)
        self.error = error


class ResultDoesNotFit(HowdahError, ValueError):
    """A job returned what its function's annotation does not allow; `result` is the plain JSON."""

    def __init__(self, message: str, result: object = None) -> None:
        super().__init__(message)
        self.result = result


class JobCancelled(HowdahError): ...


class StaleLease(HowdahError): ...
