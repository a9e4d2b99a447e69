"""Invalid values by every role, in every function and column that it may use.

What a role may call or write is read from the catalog, so new functions are included. Each example
is a few calls and statements with values at and beyond every limit. Afterwards a worker works until
nothing is left, the honest job is done, and everything can be listed.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import suppress
from typing import Any, NamedTuple

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.budget import examples
from tests.fuzz.test_plain_sql import (
    DOCUMENTS,
    EDGES,
    IDS,
    INSTANTS,
    INTEGERS,
    MINE,
    TEXTS,
    World,
    check_that_the_queue_still_works,
)
from tests.store.roles import ROLES, Roles, roles_in
from tests.support import Session
from tests.support.databases import Databases

# Many numbers of 12,000 digits, each of a few bytes on disk.
NUMBERS = (
    "(select jsonb_build_object('a', jsonb_agg(1e12000::numeric)) from generate_series(1, {}))"
)
GIGABYTE, MEGABYTES = NUMBERS.format(100_000), NUMBERS.format(2_000)
LENGTHS = ["0", "1 second", "-1 second", "1 year", "100 years", "-infinity", "infinity", "soon"]
BOOLS = ["true", "false"]
NAMES = [MINE, "somebody", "other", "", "x" * 200, "x" * 201]

OF_TYPE: dict[str, list[str]] = {
    "text": [*NAMES, *TEXTS],
    "jsonb": [*DOCUMENTS, f'[{{"job_type": "{MINE}"}}]'],
    "integer": INTEGERS,
    "uuid": IDS,
    "interval": LENGTHS,
    "timestamp with time zone": INSTANTS,
    "boolean": BOOLS,
    "date": ["today", "infinity", "9999-12-31"],
}


class Statement(NamedTuple):
    """A statement of a role, with its values."""

    sql: str
    values: tuple[object, ...]


def value_of(kind: str, known: st.SearchStrategy[str]) -> st.SearchStrategy[object]:
    """Return values of an SQL type, as text; of an array, lists of them."""
    if kind.endswith("[]"):
        return st.lists(value_of(kind[:-2], known), max_size=3) | st.none()
    edges = st.sampled_from(OF_TYPE[kind])
    return (edges | known if kind == "uuid" else edges) | st.none()


class Fuzzed(NamedTuple):
    """A database with its roles, and the statements that each role may send."""

    world: World
    roles: Roles
    statements: dict[str, st.SearchStrategy[Statement]]


def calls(roles: Roles, role: str) -> Generator[st.SearchStrategy[Statement]]:
    """Yield every function that is open to a role, with values of its types."""
    known = st.deferred(lambda: st.sampled_from(known_ids(roles)))
    for row in roles.owner.rows(
        "select oid::regprocedure::text as name, prokind = 'p' as is_procedure, "
        "proargtypes::regtype[]::text[] as types from pg_proc "
        "where pronamespace = 'howdah'::regnamespace and prorettype <> 'trigger'::regtype "
        "and has_function_privilege(%s, oid, 'execute')",
        roles.named(role).value("select current_user::text"),
    ):
        name = re.sub(r"^(howdah\.)?", "howdah.", row["name"].partition("(")[0])
        holes = ", ".join(f"%s::{kind}" for kind in row["types"])
        word = "call" if row["is_procedure"] else "select"
        values = st.tuples(*(value_of(kind, known) for kind in row["types"]))
        yield values.map(lambda values, sql=f"{word} {name}({holes})": Statement(sql, values))


def writes(roles: Roles, role: str) -> Generator[st.SearchStrategy[Statement]]:
    """Yield every column that a role may write, by INSERT and by UPDATE."""
    name = roles.named(role).value("select current_user::text")
    for relation, privilege, columns in [
        (row["relation"], row["privilege"], row["columns"])
        for row in roles.owner.rows(
            "select c.oid::regclass::text as relation, privilege, array_agg(a.attname::text) "
            "as columns from pg_class as c join pg_attribute as a on a.attrelid = c.oid "
            "cross join unnest(array['insert', 'update']) as privilege "
            "where c.relnamespace = 'howdah'::regnamespace and c.relkind in ('r', 'p', 'v') "
            "and a.attnum > 0 and not a.attisdropped "
            "and has_column_privilege(%s, c.oid, a.attnum, privilege) group by 1, 2",
            name,
        )
    ]:
        yield row_of(relation, privilege, columns)


@st.composite
def row_of(draw: st.DrawFn, relation: str, privilege: str, columns: list[str]) -> Statement:
    names = draw(st.lists(st.sampled_from(columns), min_size=1, max_size=4, unique=True))
    values: dict[str, object] = {"job_type": MINE} if privilege == "insert" else {}
    values |= {name: draw(st.sampled_from(EDGES[name]) | st.none()) for name in names}
    if privilege == "insert":
        holes = ", ".join(["%s"] * len(values))
        sql = f"insert into {relation} ({', '.join(values)}) values ({holes})"
    else:
        sql = f"update {relation} set {', '.join(f'{name} = %s' for name in values)}"
    return Statement(sql, tuple(values.values()))


def known_ids(roles: Roles) -> list[str]:
    return [str(id) for id in roles.owner.column("select id from howdah.jobs limit 5")] or IDS


@pytest.fixture(scope="module")
def fuzzed(databases: Databases) -> Generator[Fuzzed]:
    with roles_in(databases) as roles:
        world = World(roles.owner.dsn)
        statements = {role: st.one_of(*calls(roles, role), *writes(roles, role)) for role in ROLES}
        yield Fuzzed(world, roles, statements)
        world.close()


def send(session: Session, statement: Statement) -> None:
    """Send a statement; a refusal is fine, the end of the session is not."""
    with suppress(psycopg.Error):
        session.execute(statement.sql, *statement.values)
    session.execute("select pg_advisory_unlock_all()")


@pytest.mark.parametrize("role", ROLES)
@given(data=st.data())
@examples(15)
def test_no_statement_of_a_role_ends_a_worker(fuzzed: Fuzzed, role: str, data: Any) -> None:
    world = fuzzed.world
    world.reset()
    world.db.execute("delete from paused_types")  # which a worker's role may fill
    for _ in range(3):
        world.db.enqueue(MINE, {"a": 1})
    for statement in data.draw(st.lists(fuzzed.statements[role], min_size=1, max_size=8)):
        send(fuzzed.roles.named(role), statement)
    world.db.execute("delete from paused_types")
    check_that_the_queue_still_works(world)


@pytest.mark.parametrize("role", ROLES)
def test_the_functions_and_columns_of_a_role_are_found(fuzzed: Fuzzed, role: str) -> None:
    """The fuzzing must reach all functions and columns of a role."""
    callable_functions = list(calls(fuzzed.roles, role))
    writable_columns = list(writes(fuzzed.roles, role))
    at_least = {"producer": (10, 2), "worker": (50, 3), "observer": (10, 0)}[role]
    assert (len(callable_functions) >= at_least[0], len(writable_columns) >= at_least[1]) == (
        True,
        True,
    )


@pytest.mark.parametrize("table", ["jobs", "jobs_live"])
def test_an_unreadable_payload_is_refused(fuzzed: Fuzzed, table: str) -> None:
    world = fuzzed.world
    world.reset()
    with pytest.raises(psycopg.Error) as refused:
        fuzzed.roles.producer.execute(
            f"insert into {table} (job_type, data) values ('{MINE}', {GIGABYTE})"
        )
    assert refused.value.sqlstate == "54000"
    check_that_the_queue_still_works(world)


def test_a_result_or_event_that_is_too_large_to_be_listed_is_refused(fuzzed: Fuzzed) -> None:
    world = fuzzed.world
    world.reset()
    job = world.db.enqueue(MINE)
    (claim,) = world.db.claim(MINE, worker="by hand")
    for sql in (
        f"select howdah.complete('by hand', array[%s::uuid], array[1], array[{MEGABYTES}])",
        f"select howdah.emit('by hand', array[%s::uuid], array[1], array['k'], array[{MEGABYTES}])",
        f"select howdah.beat('by hand', p_info => {MEGABYTES}), %s",
    ):
        with pytest.raises(psycopg.errors.CheckViolation):
            fuzzed.roles.worker.execute(sql, job)
    assert world.db.release([claim]) == {job}
    check_that_the_queue_still_works(world)


@pytest.mark.parametrize("verb", ["retry", "fail"])
def test_a_very_long_error_is_cut(fuzzed: Fuzzed, verb: str) -> None:
    world = fuzzed.world
    world.reset()
    job = world.db.enqueue(MINE)
    world.db.claim(MINE, worker="by hand")
    fuzzed.roles.worker.execute(
        f"select howdah.{verb}('by hand', array[%s::uuid], array[1], array[repeat('x', 3000000)])",
        job,
    )
    assert world.db.value("select length(last_error) from jobs where id = %s", job) == 10_000
    assert world.db.value("select length(errors::text) < 11000 from jobs where id = %s", job)
