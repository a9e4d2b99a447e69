"""Errors: translate the errors of PostgreSQL and the network into howdah's own.

Every call of the store passes through here, so no other part needs to know a SQLSTATE.
`transient` tells errors that end by themselves (a worker waits and tries again) from those
that do not (a worker logs them and stops).
"""

from __future__ import annotations

from uuid import UUID

import asyncpg

from howdah.errors import (
    BadInput,
    HowdahError,
    JobEnded,
    JobExists,
    JobNotFound,
    NotAllowed,
    PayloadTooLarge,
    ReadOnly,
    SchemaMissing,
    SchemaNewer,
    SchemaOlder,
    Unreachable,
)

_INSTALL = "run `howdah install` (or `await queue.install()`)"
NOT_INSTALLED = f"this database has no howdah schema: {_INSTALL}"
NOT_COMPLETE = f"this database has no howdah schema, or not all of it: {_INSTALL}"

# SQLSTATEs that end by themselves: lost connections, out of resources, a restart or shutdown,
# lock timeouts, transactions ended because they were idle or too long; a standby that will be
# promoted, a full disk that somebody clears.
_TRANSIENT_STATES = ("08", "53", "57", "55P03", "25006", "25P03", "25P04", "58")

# Classes of SQLSTATE that do not depend on the values of one job: the statement does not fit the
# schema or the session, or the server is broken.
_WHOLE_CALL = ("26", "42", "XX")


# asyncpg raises InternalClientError when a command meets a closing connection; treat it as lost.
ClosingRace = asyncpg.InternalClientError

# What a call raises if its connection is lost or the server refuses a statement.
CONNECTION_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, ClosingRace, OSError)


class Transient(Unreachable):
    """An error that ends by itself: wait and try again."""


class LostRace(Transient):
    """A deadlock or a conflict with a concurrent transaction: try again at once."""


def from_postgres(error: BaseException, shown_dsn: str) -> HowdahError | None:
    """Translate an error; None: raise it as it is."""
    if isinstance(error, HowdahError):
        return None  # translated already: some of howdah's errors are ConnectionErrors, too
    if isinstance(error, asyncpg.PostgresError):
        return _from_server(error, shown_dsn)
    if isinstance(error, ConnectionRefusedError):
        return _unreachable(error, shown_dsn)
    if isinstance(error, TimeoutError):
        return Transient(
            f"{shown_dsn} did not answer in time; the call may have taken effect. "
            "Look for a lock or a busy server, or set a longer call_timeout"
        )
    if isinstance(error, asyncpg.InterfaceError | ClosingRace | ConnectionError):
        return Transient(
            f"the connection to {shown_dsn} was lost: {error}. "
            "The call may have taken effect: check that before you repeat it"
        )
    if isinstance(error, OSError):
        return _unreachable(error, shown_dsn)
    return None


def _unreachable(error: OSError, shown_dsn: str) -> Transient:
    reason = error.strerror or error
    return Transient(
        f"cannot reach {shown_dsn}: {reason}. Check the address, and that the server runs"
    )


def _from_server(error: asyncpg.PostgresError, shown_dsn: str) -> HowdahError:
    state = error.sqlstate or ""
    message = str(error.args[0]) if error.args else str(error)  # str adds the detail and the hint
    if state == "HW001":
        return PayloadTooLarge(_with_hint(error, message))
    if state == "HW002":
        return BadInput(_with_hint(error, message))
    if state == "HW007" and error.detail:
        return JobExists(_with_hint(error, message), UUID(error.detail))
    if state == "HW008":
        return JobEnded(message)
    if state == "HW009":
        return JobNotFound(message)
    if (script_error := from_install_script(error)) is not None:
        return script_error
    if state == "23505" and error.constraint_name == "jobs_live_pkey":
        detail = f"{error.detail} " if error.detail else ""
        return BadInput(
            f"a job with this id exists already. {detail}Give each job an id of its own"
        )
    if state in ("26000", "42P05"):
        return HowdahError(
            f"a pooler in transaction mode answers at {shown_dsn}: leave out pgbouncer=False"
        )
    if state in ("3F000", "42P01", "42883"):
        return SchemaMissing(f"{NOT_COMPLETE}. PostgreSQL said: {message}")
    if state == "42501":
        return NotAllowed(f"{message}. `howdah sql --grants` prints what each role needs.")
    if state == "25006":
        return ReadOnly(
            f"{shown_dsn} takes no writes (a standby, or set read-only): {message}. "
            "Connect to the primary"
        )
    if state.startswith(("22", "23")):
        return BadInput(_constraint_or_message(error, message))
    if state.startswith(("28", "3D")):
        return Unreachable(
            f"{shown_dsn} refused the connection: {message}. Check user, password and database"
        )
    if state.startswith("40"):
        return LostRace(f"{shown_dsn}: {message}")
    if state.startswith(_TRANSIENT_STATES):
        return Transient(f"{shown_dsn}: {message}")
    return HowdahError(f"PostgreSQL said: {message} (SQLSTATE {state})")


def from_install_script(error: asyncpg.PostgresError) -> HowdahError | None:
    """Translate an error that the install script raises on purpose; None for any other."""
    kinds = {"HW003": NotAllowed, "HW004": SchemaOlder, "HW005": SchemaNewer}
    kind = kinds.get(error.sqlstate or "")
    return kind(str(error.args[0])) if kind is not None else None


def _constraint_or_message(error: asyncpg.PostgresError, message: str) -> str:
    """Return the name of a violated constraint, which reads as a sentence, or the message."""
    constraint = getattr(error, "constraint_name", None)
    if isinstance(constraint, str) and constraint:
        return f"refused: {constraint.replace('_', ' ')}"
    return _with_hint(error, message)


def _with_hint(error: asyncpg.PostgresError, message: str) -> str:
    hint = getattr(error, "hint", None)
    return f"{message}. {hint}" if hint else message


def transient(error: BaseException) -> bool:
    """Whether it may help to wait and try again."""
    return isinstance(error, Transient | ReadOnly)


def about_unreadable_job(error: BaseException) -> bool:
    """Whether a claim may have failed because one job is damaged or cannot be read."""
    state: object = getattr(error.__cause__, "sqlstate", None)
    return (
        isinstance(state, str)
        and not transient(error)
        and (about_one_job(error) or state.startswith("XX"))
    )


def about_one_job(error: BaseException) -> bool:
    """Whether the server refused the values of one job, and not the call as such.

    A wrong password, a missing privilege or a missing function concerns every job.
    """
    if isinstance(error, BadInput):
        return True
    state: object = getattr(error.__cause__, "sqlstate", None)
    return type(error) is HowdahError and isinstance(state, str) and state[:2] not in _WHOLE_CALL
