"""Refusals: what the server or the network refuses, in howdah's own errors.

Every call of the store passes through here, so nobody above it needs to know a SQLSTATE.
`passing` tells trouble that goes away by itself (the worker waits and tries again) from
mistakes that do not (the worker says so and stops).
"""

from __future__ import annotations

import asyncpg

from howdah.errors import (
    BadInput,
    HowdahError,
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
NOT_WHOLE = f"this database has no howdah schema, or not all of it: {_INSTALL}"

# Classes of SQLSTATE that time heals: connection trouble, lost races, out of resources, an
# operator stepping in, lock timeouts, transactions ended for idling or taking too long; and a
# standby that will be promoted, a disk being cleared.
_PASSING = ("08", "53", "57", "55P03", "25006", "25P03", "25P04", "58")

# Classes of SQLSTATE that say nothing of the values: the call as it stands does not fit the
# schema, or the session, or the server is broken.
_NO_CALL = ("26", "42", "XX")


# Asked for something between a server's last words on a connection and the end of it, asyncpg
# calls the trouble its own.
ClosingRace = asyncpg.InternalClientError

# What a connection raises that is lost, or on which the server refuses something.
CONNECTION_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, ClosingRace, OSError)


class Transient(Unreachable):
    """Trouble that goes away by itself: wait and try again."""


class LostRace(Transient):
    """Somebody else changed the same rows at the same moment: try again at once."""


def from_postgres(error: BaseException, shown_dsn: str) -> HowdahError | None:
    """Translate an error; None where it is not ours to translate."""
    if isinstance(error, HowdahError):
        return None  # translated already: some of ours are ConnectionErrors too
    if isinstance(error, asyncpg.PostgresError):
        return _from_server(error, shown_dsn)
    if isinstance(error, ConnectionRefusedError):
        return Transient(f"cannot reach {shown_dsn}: {error.strerror or error}")
    if isinstance(error, TimeoutError):
        return Transient(f"no answer in time from {shown_dsn}")
    if isinstance(error, asyncpg.InterfaceError | ClosingRace | ConnectionError):
        return Transient(f"the connection to {shown_dsn} was lost: {error}")
    if isinstance(error, OSError):
        return Transient(f"cannot reach {shown_dsn}: {error.strerror or error}")
    return None


def _from_server(error: asyncpg.PostgresError, shown_dsn: str) -> HowdahError:
    state = error.sqlstate or ""
    said = str(error.args[0]) if error.args else str(error)  # str adds the detail and the hint
    if state == "HW001":
        return PayloadTooLarge(_with_hint(error, said))
    if state == "HW002":
        return BadInput(_with_hint(error, said))
    if (refused := refusal_of_script(error)) is not None:
        return refused
    if state == "23505" and error.constraint_name == "jobs_live_pkey":
        return BadInput(f"a job with this id is there already. {error.detail or ''}".rstrip())
    if state in ("26000", "42P05"):
        return HowdahError(
            f"a pooler in transaction mode answers at {shown_dsn}: leave out pgbouncer=False"
        )
    if state in ("3F000", "42P01", "42883"):
        return SchemaMissing(f"{NOT_WHOLE}. PostgreSQL said: {said}")
    if state == "42501":
        return NotAllowed(f"{said}. `howdah sql --grants` prints what each role needs.")
    if state == "25006":
        return ReadOnly(f"{shown_dsn} takes no writes (a standby, or set read-only): {said}")
    if state.startswith(("22", "23")):
        return BadInput(_plain_words(error, said))
    if state.startswith(("28", "3D")):
        return Unreachable(f"{shown_dsn} does not let us in: {said}")
    if state.startswith("40"):
        return LostRace(f"{shown_dsn}: {said}")
    if state.startswith(_PASSING):
        return Transient(f"{shown_dsn}: {said}")
    return HowdahError(f"PostgreSQL said: {said} (SQLSTATE {state})")


def refusal_of_script(error: asyncpg.PostgresError) -> HowdahError | None:
    """Translate what the install's script refuses; None where it is something else."""
    kinds = {"HW003": NotAllowed, "HW004": SchemaOlder, "HW005": SchemaNewer}
    kind = kinds.get(error.sqlstate or "")
    return kind(str(error.args[0])) if kind is not None else None


def _plain_words(error: asyncpg.PostgresError, said: str) -> str:
    """Name the promise that a CHECK keeps: the constraints are named to be read aloud."""
    constraint = getattr(error, "constraint_name", None)
    if isinstance(constraint, str) and constraint:
        return f"refused: {constraint.replace('_', ' ')}"
    return _with_hint(error, said)


def _with_hint(error: asyncpg.PostgresError, said: str) -> str:
    hint = getattr(error, "hint", None)
    return f"{said}. {hint}" if hint else said


def transient(error: BaseException) -> bool:
    """Whether waiting and trying again may help."""
    return isinstance(error, Transient | ReadOnly)


def about_what_is_read(error: BaseException) -> bool:
    """Whether a claim may have been refused because one job cannot be read, or is damaged."""
    state: object = getattr(error.__cause__, "sqlstate", None)
    return (
        isinstance(state, str)
        and not transient(error)
        and (about_one_job(error) or state.startswith("XX"))
    )


def about_one_job(error: BaseException) -> bool:
    """Whether it is the values of one job that were refused, and not the call as such.

    A password, a privilege or a function that is gone concerns every job alike.
    """
    if isinstance(error, BadInput):
        return True
    state: object = getattr(error.__cause__, "sqlstate", None)
    return type(error) is HowdahError and isinstance(state, str) and state[:2] not in _NO_CALL
