"""Short id: find a job by a part of its id, as lists show it.

Lists show the last eight digits, because ids of the same time have the same first digits. No index
finds an id by its end, so only the newest jobs are searched. A beginning is searched in all jobs.
"""

from __future__ import annotations

import re
from datetime import timedelta
from uuid import UUID

import msgspec

from howdah.errors import BadInput, JobNotFound
from howdah.store import Store, query

SHOWN = 8  # digits
LEAST = 6  # digits that are needed to search
MOST = 10  # jobs that an error lists if several match
DEPTH = 200_000  # jobs whose ids are searched by their end
_DIGITS = 32  # of a whole id


class Found(msgspec.Struct, frozen=True):
    """The jobs whose id begins or ends with the given digits, newest first."""

    ids: list[UUID]
    marked: bool  # it was written as the end of an id: …0872eb5e


def shortened(id: UUID) -> str:
    """Return the last digits of an id, as lists show them."""
    return str(id)[-SHOWN:]


def part_of_id(text: str) -> tuple[str, bool] | None:
    """Read the digits of a part of an id, and whether it is marked as the end; None: it is not."""
    text = text.strip()
    digits = text.lstrip("….").strip()
    marked = digits != text
    digits = digits.replace("-", "").lower()
    if len(digits) >= _DIGITS or not re.fullmatch(rf"[0-9a-f]{{{LEAST},}}", digits):
        return None
    return digits, marked


async def find(
    store: Store, text: str, *, depth: int = DEPTH, within: timedelta = query.WITHIN
) -> Found | None:
    """Find jobs by a part of their id; None if the text cannot be a part of an id."""
    part = part_of_id(text)
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


async def find_one(store: Store, text: str, *, depth: int = DEPTH) -> UUID:
    """Return the one job with this id, or part of an id; raises JobNotFound or BadInput."""
    try:
        return UUID(text)
    except ValueError:
        pass
    matching = await find(store, text, depth=depth)
    if matching is None:
        raise BadInput(
            f"{text!r} is not the id of a job: give a whole id, or {LEAST} or more digits of "
            "its beginning or its end"
        )
    return only(matching, text, depth)


def only(matching: Found, text: str, depth: int = DEPTH) -> UUID:
    """Return the only job that was found; raises JobNotFound or BadInput."""
    if not matching.ids:
        raise JobNotFound(
            f"no id begins with {text}, and none of the newest {depth:,} jobs has an id that "
            "ends in it"
        )
    if len(matching.ids) > 1:
        named = ", ".join(map(str, matching.ids[:MOST]))
        more = " and more" if len(matching.ids) > MOST else ""
        raise BadInput(f"several ids begin or end with {text}; give a whole one: {named}{more}")
    return matching.ids[0]
