"""No role can do more than it is allowed to.

Everything in the schema is read from the catalog and compared with `privileges.py`, so a new object
that is not stated there fails. What is stated is then tried, by real sessions of each role.
"""

from __future__ import annotations

import re
from collections.abc import Generator

import psycopg
import pytest

from tests.security import privileges
from tests.security.privileges import EVERYBODY, FUNCTIONS, PROCEDURES, RELATIONS, SEQUENCES
from tests.store.roles import Roles, roles_in
from tests.support import Session
from tests.support.databases import Databases

pytestmark = pytest.mark.engine

TRIGGER = "howdah.take_plain_insert()"


@pytest.fixture(scope="module")
def roles(databases: Databases) -> Generator[Roles]:
    with roles_in(databases) as created:
        yield created


def day_names(name: str) -> str:
    return re.sub(r"_\d{8}$", "_DAY", name)


def functions(roles: Roles) -> list[str]:
    signatures = roles.owner.column(
        "select oid::regprocedure::text from pg_proc where pronamespace = 'howdah'::regnamespace"
    )
    return [re.sub(r"^howdah\.", "", each) for each in signatures]


def relations(roles: Roles) -> list[str]:
    return roles.owner.column(
        "select relname::text from pg_class "
        "where relnamespace = 'howdah'::regnamespace and relkind in ('r', 'p', 'v', 'm', 'f')"
    )


def columns(roles: Roles, relation: str) -> list[str]:
    return roles.owner.column(
        "select attname::text from pg_attribute "
        "where attrelid = %s::regclass and attnum > 0 and not attisdropped",
        f"howdah.{relation}",
    )


@pytest.fixture(autouse=True)
def names_are_written_in_full(roles: Roles) -> Generator[None]:
    roles.owner.execute("set search_path = public")
    yield
    roles.owner.execute("set search_path = howdah, public")


# ── every object has an expectation ──


def test_every_function_has_a_stated_expectation(roles: Roles) -> None:
    assert set(functions(roles)) == set(FUNCTIONS)


def test_every_table_and_view_has_a_stated_expectation(roles: Roles) -> None:
    assert {day_names(name) for name in relations(roles)} == set(RELATIONS)


def test_every_other_object_in_the_schema_has_a_stated_expectation(roles: Roles) -> None:
    sequences = roles.owner.column(
        "select relname::text from pg_class "
        "where relnamespace = 'howdah'::regnamespace and relkind = 'S'"
    )
    assert set(sequences) == set(SEQUENCES)
    types = roles.owner.column(
        "select typname::text from pg_type as t where typnamespace = 'howdah'::regnamespace "
        "and typtype <> 'c' and typcategory <> 'A'"
    )
    assert set(types) == privileges.TYPES
    for catalog, owner in (("pg_operator", "oprnamespace"), ("pg_collation", "collnamespace")):
        assert (
            roles.owner.value(
                f"select count(*) from {catalog} where {owner} = 'howdah'::regnamespace"
            )
            == 0
        )


def test_a_new_object_without_an_expectation_is_detected(databases: Databases) -> None:
    """The tests above can fail: they detect new objects."""
    with roles_in(databases) as roles:
        roles.owner.execute("create function howdah.more() returns int language sql as 'select 1'")
        roles.owner.execute("create table howdah.more (n int)")
        assert "more()" in functions(roles)
        assert "more" in relations(roles)


# ── the catalog grants what is stated, and nothing more ──


def role_name(session: Session) -> str:
    return session.value("select session_user")


@pytest.mark.parametrize("role", EVERYBODY)
def test_the_catalog_grants_the_stated_functions_and_no_others(roles: Roles, role: str) -> None:
    granted = roles.owner.column(
        "select oid::regprocedure::text from pg_proc where pronamespace = 'howdah'::regnamespace "
        "and has_function_privilege(%s, oid, 'execute')",
        role_name(roles.named(role)),
    )
    names = {re.sub(r"^howdah\.", "", each) for each in granted}
    assert names == {name for name, allowed in FUNCTIONS.items() if role in allowed}


@pytest.mark.parametrize("role", EVERYBODY)
def test_the_catalog_grants_the_stated_columns_and_no_others(roles: Roles, role: str) -> None:
    name = role_name(roles.named(role))
    for relation in relations(roles):
        stated = RELATIONS[day_names(relation)]
        for privilege in ("select", "insert", "update", "references"):
            granted = roles.owner.column(
                "select attname::text from pg_attribute where attrelid = %s::regclass "
                "and attnum > 0 and not attisdropped "
                "and has_column_privilege(%s, attrelid, attnum, %s)",
                f"howdah.{relation}",
                name,
                privilege,
            )
            columns_of_role = stated.get(privilege, {}).get(role, set())
            expected = columns(roles, relation) if "*" in columns_of_role else columns_of_role
            assert set(granted) == set(expected), (relation, privilege)
        for privilege in ("delete", "truncate", "trigger"):
            assert not roles.owner.value(
                "select has_table_privilege(%s, %s::regclass, %s)",
                name,
                f"howdah.{relation}",
                privilege,
            ), (relation, privilege)


@pytest.mark.parametrize("role", EVERYBODY)
def test_no_role_owns_an_object_or_may_pass_on_a_grant(roles: Roles, role: str) -> None:
    name = role_name(roles.named(role))
    assert (
        roles.owner.value(
            "select count(*) from pg_class where relnamespace = 'howdah'::regnamespace "
            "and pg_get_userbyid(relowner) = %s",
            name,
        )
        == 0
    )
    for relation, stated in RELATIONS.items():
        if role in stated.get("select", {}) and not relation.endswith("_DAY"):
            assert not roles.owner.value(
                "select has_table_privilege(%s, %s::regclass, 'select with grant option')",
                name,
                f"howdah.{relation}",
            )


# ── real sessions behave as stated ──


def refused(session: Session, sql: str) -> bool:
    """Whether a statement is refused for a missing privilege; it is rolled back."""
    with session.rolled_back():
        try:
            with session.transaction():
                session.execute(sql)
        except psycopg.errors.InsufficientPrivilege:
            return True
        except psycopg.Error:
            return False  # allowed, and then refused because of the null
    return False


@pytest.mark.parametrize("role", EVERYBODY)
def test_every_function_refuses_roles_without_the_privilege(roles: Roles, role: str) -> None:
    session = roles.named(role)
    refusals: dict[str, bool] = {}
    for function in FUNCTIONS:
        name, _, types = function.rstrip(")").partition("(")
        arguments = ", ".join(f"null::{type}" for type in types.split(",") if type)
        verb = "call" if function in PROCEDURES else "select"
        refusals[function] = refused(session, f"{verb} howdah.{name}({arguments})")
    assert refusals == {name: role not in allowed for name, allowed in FUNCTIONS.items()}


@pytest.mark.parametrize("role", EVERYBODY)
def test_every_column_refuses_roles_without_the_privilege(roles: Roles, role: str) -> None:
    session = roles.named(role)
    for relation in relations(roles):
        if day_names(relation) in ("queue_depth", "worker_health"):
            continue  # PostgreSQL checks that a view takes no rows before it checks privileges
        stated = RELATIONS[day_names(relation)]
        for column in columns(roles, relation):
            for privilege, sql in {
                "select": f"select {column} from howdah.{relation} limit 0",
                "insert": f"insert into howdah.{relation} ({column}) values (null)",
                "update": f"update howdah.{relation} set {column} = null where false",
            }.items():
                allowed = stated.get(privilege, {}).get(role, set())
                may = "*" in allowed or column in allowed
                assert refused(session, sql) is not may, (sql, role)


@pytest.mark.parametrize("role", EVERYBODY)
def test_no_role_can_delete_or_change_the_schema(roles: Roles, role: str) -> None:
    session = roles.named(role)
    for relation in relations(roles):
        kind = "view" if day_names(relation) in ("queue_depth", "worker_health") else "table"
        statements = [
            f"drop {kind} howdah.{relation}",
            f"alter {kind} howdah.{relation} rename to x",
        ]
        if kind == "table":
            statements += [
                f"delete from howdah.{relation}",
                f"truncate howdah.{relation}",
                f"lock table howdah.{relation} in access exclusive mode",
                f"create trigger t before insert on howdah.{relation} execute function {TRIGGER}",
            ]
        for sql in statements:
            assert refused(session, sql), (sql, role)
    for sql in (
        "alter function howdah.enqueue_many(jsonb) owner to current_user",
        "create or replace function howdah.today() returns date language sql as 'select null'",
        "create table howdah.more (n int)",
        "drop schema howdah cascade",
        "alter domain howdah.job_status set default 'completed'",
    ):
        assert refused(session, sql), (sql, role)


@pytest.mark.parametrize("role", EVERYBODY)
def test_a_role_can_use_the_sequence_but_not_set_it(roles: Roles, role: str) -> None:
    session = roles.named(role)
    may = role in SEQUENCES["id_counter"]["usage"]
    assert refused(session, "select nextval('howdah.id_counter')") is not may
    assert refused(session, "select setval('howdah.id_counter', 1)")
    assert refused(session, "alter sequence howdah.id_counter restart")
