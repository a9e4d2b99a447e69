"""The store tells asyncpg the array types, so asyncpg does not ask the server for them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from howdah import BadInput, Queue
from howdah.store.store import Store
from tests.support import Database

CATALOG_QUERY = "typeinfo"  # part of the query that asyncpg sends to the catalog
VALUES: dict[str, list[Any]] = {
    "int4": [1, None, -(2**31)],
    "timestamptz": [datetime(2026, 1, 2, 3, 4, 5, 6, UTC), None],
    "interval": [timedelta(days=3, microseconds=7), None],
    "uuid": [UUID(int=7), None],
    "jsonb": ['{"a": [1, null]}', None],
}


async def fetch_and_log(store: Store, sql: str, *values: object) -> tuple[Any, list[str]]:
    """Run a query on a new connection; return the value and every statement that was sent."""
    connection = await store.connect()
    sent: list[str] = []

    def record(query: asyncpg.connection.LoggedQuery) -> None:
        sent.append(query.query)

    try:
        with connection.query_logger(record):  # pyright: ignore[reportUnknownMemberType]
            return await connection.fetchval(sql, *values), sent
    finally:
        await connection.close()


@pytest.mark.parametrize("name", VALUES)
async def test_an_array_is_sent_and_read_without_a_catalog_query(queue: Queue, name: str) -> None:
    sql = f"select $1::{name}[]"
    assert await fetch_and_log(queue.store, sql, VALUES[name]) == (VALUES[name], [sql])


@pytest.mark.parametrize("name", VALUES)
async def test_an_empty_array_is_sent_and_read(queue: Queue, name: str) -> None:
    assert await queue.store.fetchval(f"select $1::{name}[]", []) == []


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (0.25, timedelta(milliseconds=250)),
        (-0.000_001, timedelta(microseconds=-1)),
        (90_000.0, timedelta(hours=25)),
        (timedelta(days=-1, microseconds=3), timedelta(days=-1, microseconds=3)),
        (timedelta(days=999_999), timedelta(days=999_999)),
    ],
)
async def test_a_length_of_time_is_sent_as_it_is(
    queue: Queue, given: timedelta | float, read: timedelta
) -> None:
    text = await queue.store.fetchval("select ($1::interval[])[1]::text", [given])
    assert await queue.store.fetchval("select $1::text::interval", text) == read


@pytest.mark.parametrize(
    ("name", "bad"), [("int4", 2**31), ("int4", "1"), ("interval", float("inf")), ("uuid", "no id")]
)
async def test_a_value_of_another_kind_is_refused_before_it_is_sent(
    queue: Queue, name: str, bad: object
) -> None:
    with pytest.raises(BadInput, match="invalid input for query argument"):
        await queue.store.fetchval(f"select $1::{name}[]", [bad])
    assert await queue.store.fetchval("select 1") == 1


async def test_this_test_sees_a_catalog_query(queue: Queue) -> None:
    _, sent = await fetch_and_log(queue.store, "select $1::int2[]", [1])
    assert any(CATALOG_QUERY in statement for statement in sent)


def test_the_type_oids_are_those_of_the_catalog(shared_db: Database) -> None:
    from howdah.store.array_types import _ARRAYS  # pyright: ignore[reportPrivateUsage]

    for oid, name, element, element_name in _ARRAYS:
        (row,) = shared_db.rows(
            "select a.typname::text as name, e.oid::int as element, e.typname::text as of "
            "from pg_type as a join pg_type as e on e.oid = a.typelem where a.oid = %s",
            oid,
        )
        assert row == {"name": name, "element": element, "of": element_name}
