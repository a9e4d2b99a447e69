"""Arrays: which of PostgreSQL's own array types there are, told and not asked.

asyncpg knows the types that PostgreSQL brings along, but not their arrays. It asks the server, on
every connection and for each statement that has a new one: a query that takes 4 to 9 ms, where the
statement itself takes 0.2. They have had the same numbers since they were made, and the verbs
take nothing but sets.

That it can be told is nothing asyncpg promises. Where it cannot, it asks as before.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncpg

# the array's number and name, and those of what is in it
_ARRAYS = (
    (1007, "_int4", 23, "int4"),
    (1185, "_timestamptz", 1184, "timestamptz"),
    (1187, "_interval", 1186, "interval"),
    (2951, "_uuid", 2950, "uuid"),
    (3807, "_jsonb", 3802, "jsonb"),
)
# as asyncpg would read them from the catalog
_ROWS = [
    {
        "oid": oid,
        "ns": "pg_catalog",
        "name": name,
        "kind": b"b",
        "elemtype": element,
        "elemtype_name": element_name,
        "elemdelim": b",",
        "depth": 0,
        **dict.fromkeys(("basetype", "basetype_name", "range_subtype", "range_subtype_name")),
        **dict.fromkeys(("attrtypoids", "attrnames")),
    }
    for oid, name, element, element_name in _ARRAYS
]


def tell_arrays(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """Tell a new connection of the arrays that howdah sends."""
    with suppress(AttributeError, KeyError, TypeError):
        connection.get_settings().register_data_types(_ROWS)
