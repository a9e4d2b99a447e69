"""Ready: whether the database answers, and holds a schema that this code can use.

One short query, for probes that ask again and again: see web/probes.py.
"""

from __future__ import annotations

from datetime import timedelta

from howdah.errors import HowdahError, SchemaError
from howdah.store import Store, engine_files, query

NO_ANSWER = "the database does not answer"
NO_FIT = "the schema in the database does not fit this code"


async def not_ready(store: Store, within: timedelta = query.WITHIN) -> str | None:
    """Say what is missing, without names and numbers; None if all is well."""
    try:
        rows = await query.fetch(
            store, within, "select schema_number, compatible_from from howdah.installed"
        )
    except SchemaError:
        return NO_FIT
    except (HowdahError, OSError):
        return NO_ANSWER
    fits = bool(rows) and rows[0][1] <= engine_files.SCHEMA_NUMBER <= rows[0][0]
    return None if fits else NO_FIT
