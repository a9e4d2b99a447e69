"""Array types: describe PostgreSQL's array types to asyncpg, so that it does not query them.

asyncpg knows PostgreSQL's base types, but not their arrays. On every connection, for each statement
with a new array type, it runs a catalog query that takes 4 to 9 ms; the statement itself takes
0.2 ms. The oids of these types never change. Arrays of ids, numbers and intervals have codecs of
their own: see array_codecs.py.

The method that is used here is no public API of asyncpg. If it is missing, asyncpg queries the
catalog as usual.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncpg

# oid and name of the array type, oid and name of its element type
_ARRAYS = (
    (1185, "_timestamptz", 1184, "timestamptz"),
    (3807, "_jsonb", 3802, "jsonb"),
)
# the rows that asyncpg would read from the catalog
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


def register_array_types(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """Register the array types that howdah sends with a new connection."""
    with suppress(AttributeError, KeyError, TypeError):
        connection.get_settings().register_data_types(_ROWS)
