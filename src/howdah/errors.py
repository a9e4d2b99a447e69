"""Errors: everything howdah raises, as one tree.

    HowdahError
    ├── BadInput              what was handed in cannot be queued; nothing was written     (ValueError)
    │   ├── PayloadTooLarge   above the limit: store the data elsewhere, queue a reference
    │   └── DuplicateJobType  two functions registered under one name
    ├── SchemaError           the database does not hold the schema this code needs
    │   ├── SchemaMissing     howdah was never installed there
    │   ├── SchemaOlder       `howdah install` has to run
    │   └── SchemaNewer       the howdah package has to be upgraded
    ├── Unreachable           no connection: wrong address, refused, not allowed in         (ConnectionError)
    ├── ReadOnly              the server takes no writes: a standby, or set read-only
    ├── NotAllowed            the role lacks a privilege; see `howdah sql --grants`         (PermissionError)
    ├── EmbeddedUnavailable   no DSN, and no PostgreSQL that could be started instead
    ├── JobNotFound           no such job: a wrong id, or pruned after its retention         (LookupError)
    ├── JobFailed             `handle.result()` of a job that ended as failed
    ├── JobCancelled          `handle.result()` of a job that ended as cancelled
    └── StaleLease            a settling call for an attempt that is no longer ours

Bad input is told before anything is written. `from_postgres` in `store/refusals.py`
turns what the server refuses into this tree.
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


class JobCancelled(HowdahError): ...


class StaleLease(HowdahError): ...
