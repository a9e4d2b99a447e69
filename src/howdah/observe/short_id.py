"""Short id: find a job by a part of its id, as lists show it.

Lists show the last eight digits of an id, because ids of one moment begin alike. No index helps to
find an id by its end, so only the newest jobs are looked at; a beginning is found among all.
"""

from __future__ import annotations

import re
from datetime import timedelta
from uuid import UUID

import msgspec

from howdah.errors import BadInput, JobNotFound
from howdah.store import Store, query

SHOWN = 8  # digits
LEAST = 6  # fewer digits could be anything
MOST = 10  # jobs that are told of when several fit
DEPTH = 200_000  # jobs whose ids are looked at
_DIGITS = 32  # of a whole id


class Found(msgspec.Struct, frozen=True):
    """The jobs that a part of an id fits, newest first."""

    ids: list[UUID]
    marked: bool  # it was written as an end: …0872eb5e


def shortened(id: UUID) -> str:
    """Return the end of an id, as lists show it."""
    return str(id)[-SHOWN:]


def part_of_id(said: str) -> tuple[str, bool] | None:
    """Read the digits of a part of an id, and whether it is marked as its end; None: it is none."""
    said = said.strip()
    digits = said.lstrip("….").strip()
    marked = digits != said
    digits = digits.replace("-", "").lower()
    if len(digits) >= _DIGITS or not re.fullmatch(rf"[0-9a-f]{{{LEAST},}}", digits):
        return None
    return digits, marked


async def find(
    store: Store, said: str, *, depth: int = DEPTH, within: timedelta = query.WITHIN
) -> Found | None:
    """Find the jobs that a part of an id fits; None when it cannot be a part of one."""
    part = part_of_id(said)
    if part is None:
        return None
    digits, marked = part
    rows = await query.fetch(
        store,
        within,
        "(select id from howdah.jobs where id between $1 and $2 order by id desc limit $3) union "
        "(select id from (select id from howdah.jobs order by id desc limit $4) as newest "
        "where right(replace(id::text, '-', ''), $5) = $6 limit $3) order by id desc limit $3",
        UUID(digits.ljust(_DIGITS, "0")),
        UUID(digits.ljust(_DIGITS, "f")),
        MOST + 1,
        depth,
        len(digits),
        digits,
    )
    return Found([row[0] for row in rows], marked)


async def find_one(store: Store, said: str, *, depth: int = DEPTH) -> UUID:
    """Return the one job that an id, or a part of one, means; raises JobNotFound or BadInput."""
    try:
        return UUID(said)
    except ValueError:
        pass
    found = await find(store, said, depth=depth)
    if found is None:
        raise BadInput(
            f"{said!r} is not the id of a job: give a whole id, or {LEAST} or more digits of "
            "its beginning or its end"
        )
    return only(found, said, depth)


def only(found: Found, said: str, depth: int = DEPTH) -> UUID:
    """Return the one job that was found; raises JobNotFound or BadInput."""
    if not found.ids:
        raise JobNotFound(
            f"no id begins with {said}, and none of the newest {depth:,} jobs has an id that "
            "ends in it"
        )
    if len(found.ids) > 1:
        named = ", ".join(map(str, found.ids[:MOST]))
        more = " and more" if len(found.ids) > MOST else ""
        raise BadInput(f"several jobs have {said} in their ids; give a whole one: {named}{more}")
    return found.ids[0]
