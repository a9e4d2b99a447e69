"""`search_path` cannot be used to attack the engine.

A caller puts a schema of its own first: functions, operators, tables and types with the names that
the engine uses. Each leaves a trace when it runs. After every call of the engine there must be no
trace, above all not from a function that runs with the owner's rights.
"""

from __future__ import annotations

from collections.abc import Generator
from uuid import uuid4

import pytest

from howdah.states import State
from tests.store.roles import Roles, roles_in
from tests.support import Session
from tests.support.databases import Databases

pytestmark = pytest.mark.engine

TYPES = ("uuid", "text", "int", "bigint", "timestamptz", "interval", "jsonb", "bool", "date")
COMPARISONS = ("=", "<>", "<", ">", "<=", ">=")
ARITHMETIC = (
    ("||", "text", "text", "text"),
    ("||", "jsonb", "jsonb", "jsonb"),
    ("+", "int", "int", "int"),
    ("-", "int", "int", "int"),
    ("*", "int", "int", "int"),
    ("/", "int", "int", "int"),
    ("+", "timestamptz", "interval", "timestamptz"),
    ("-", "timestamptz", "interval", "timestamptz"),
    ("-", "timestamptz", "timestamptz", "interval"),
    ("+", "date", "int", "date"),
    ("-", "jsonb", "int", "jsonb"),
    ("~", "text", "text", "bool"),
)
FUNCTIONS = (
    ("now", "", "timestamptz"),
    ("clock_timestamp", "", "timestamptz"),
    ("random", "", "float8"),
    ("length", "text", "int"),
    ("octet_length", "text", "int"),
    ("jsonb_typeof", "jsonb", "text"),
    ("jsonb_array_length", "jsonb", "int"),
    ("to_regclass", "text", "regclass"),
    ("pg_notify", "text, text", "void"),
    ("pg_try_advisory_lock", "int, int", "bool"),
    ("pg_advisory_unlock", "int, int", "bool"),
    ("pg_try_advisory_xact_lock", "int, int", "bool"),
    ("set_config", "text, text, bool", "text"),
    ("setval", "regclass, bigint", "bigint"),
    ("has_idle_worker", "", "bool"),
    ("notify_workers", "text[]", "void"),
    ("async_commit", "", "text"),
    ("wait_for_disk", "", "void"),
    ("current_setting", "text", "text"),
    ("current_setting", "text, bool", "text"),
    ("to_char", "timestamptz, text", "text"),
    ("to_date", "text, text", "date"),
    ("right", "text, int", "text"),
    ("timezone", "text, timestamptz", "timestamp"),
    ("array_to_json", "anyarray", "json"),
    ("cardinality", "anyarray", "int"),
    ("clock", "", "timestamptz"),
    ("today", "", "date"),
    ("wake", "text[]", "void"),
    ("notify_followers", "uuid[]", "void"),
    ("option", "text", "text"),
    ("new_id", "", "uuid"),
    ("lock_space", "", "int"),
)
TABLES = (
    "jobs",
    "jobs_live",
    "jobs_finished",
    "options",
    "workers",
    "moves",
    "finished_counts",
    "job_events",
    "installed",
    "inserted",
    "deleted",
)


def traps(schema: str) -> list[str]:
    """Return the SQL that creates a tracing function or operator for every name."""

    def trap(name: str, arguments: str, answer: str, called: str) -> str:
        back = "return" if answer == "void" else "return null"
        return (
            f"create function {schema}.{name}({arguments}) returns {answer} language plpgsql "
            f"as $$ begin perform {schema}.trace('{called}'); {back}; end $$"
        )

    lines = [f"create table {schema}.traces (name text, ran_as text, called_as text)"]
    lines.append(
        f"create function {schema}.trace(name text) returns void language plpgsql as "
        f"$$ begin insert into {schema}.traces values (name, current_user, session_user); end $$"
    )
    operators = [(op, t, t, "bool") for t in TYPES for op in COMPARISONS] + list(ARITHMETIC)
    for number, (op, left, right, answer) in enumerate(operators):
        lines.append(trap(f"trap_{number}", f"{left}, {right}", answer, f"{left} {op} {right}"))
        lines.append(
            f"create operator {schema}.{op} (function = {schema}.trap_{number}, "
            f"leftarg = {left}, rightarg = {right})"
        )
    for name, arguments, answer in FUNCTIONS:
        lines.append(trap(name, arguments, answer, f"{name}({arguments})"))
    return lines


@pytest.fixture(scope="module")
def roles(databases: Databases) -> Generator[Roles]:
    with roles_in(databases) as all_roles:
        all_roles.owner.execute("create schema evil")
        all_roles.owner.execute(";\n".join(traps("evil")))
        for table in TABLES:
            all_roles.owner.execute(
                f"create table evil.{table} (like howdah.{howdah_table(table)})"
            )
        all_roles.owner.execute("grant usage on schema evil to public")
        all_roles.owner.execute("grant all on all tables in schema evil to public")
        all_roles.owner.execute("grant all on all functions in schema evil to public")
        yield all_roles


def howdah_table(table: str) -> str:
    return {"inserted": "jobs", "deleted": "jobs"}.get(table, table)


@pytest.fixture
def caller(roles: Roles, role: str) -> Generator[Session]:
    session = roles.owner if role == "owner" else roles.named(role)
    session.execute("set search_path = evil, pg_catalog")
    yield session
    session.execute("set search_path = howdah, public")
    roles.owner.execute("set search_path = howdah, public")
    roles.owner.execute("truncate evil.traces")


def traces(roles: Roles) -> list[dict[str, str]]:
    roles.owner.execute("set search_path = howdah, public")
    rows = roles.owner.rows("select name, ran_as, called_as from evil.traces")
    for table in TABLES:
        assert roles.owner.value(f"select count(*) from evil.{table}") == 0, table
    return rows


def test_the_traps_leave_traces(roles: Roles) -> None:
    session = roles.producer
    session.execute("set search_path = evil, pg_catalog")
    session.execute("select now(), 1 = 1, 'a'::text || 'b'::text, octet_length('a'::text)")
    session.execute("set search_path = howdah, public")
    assert {trace["name"] for trace in traces(roles)} == {
        "now()",
        "int = int",
        "text || text",
        "octet_length(text)",
    }
    roles.owner.execute("truncate evil.traces")


@pytest.mark.parametrize("role", ["producer", "worker", "owner"])
def test_enqueue_runs_no_code_of_the_caller(roles: Roles, caller: Session) -> None:
    ids = [
        caller.value("select howdah.enqueue('mail', '{\"a\": 1}', 150)"),
        *caller.column('select howdah.enqueue_many(\'[{"job_type": "mail"}]\')'),
        caller.value("select howdah.enqueue('mail', p_delay => '1 hour')"),
    ]
    enqueue_now = "call howdah.enqueue_now('mail', '{}', 100, null, 3, %s, null)"
    caller.execute(enqueue_now, uuid4())
    sleeper = roles.owner.session()
    sleeper.execute("select pg_advisory_lock_shared(howdah.lock_space(), 1)")
    caller.execute(enqueue_now, uuid4())
    sleeper.execute("select pg_advisory_unlock_all()")
    caller.execute("insert into howdah.jobs (job_type, data) values ('mail', '{}')")
    caller.execute("insert into howdah.jobs (job_type, run_at) values ('mail', '2100-01-01Z')")
    with (
        caller.connection.cursor() as cursor,
        cursor.copy("COPY howdah.jobs (job_type) FROM STDIN") as copy,
    ):
        copy.write_row(["mail"])
    assert traces(roles) == []
    assert roles.owner.state_of(ids[0]) is State.PENDING
    assert len(roles.owner.claim("mail", batch=100)) == 6
    roles.owner.execute("select howdah.cancel(array(select id from howdah.jobs_live))")


@pytest.mark.parametrize("role", ["worker", "owner"])
def test_no_verb_runs_code_of_the_caller(roles: Roles, caller: Session) -> None:
    for _ in range(8):
        caller.enqueue("mail", max_attempts=5)
    claims = caller.claim("mail", worker="w")
    assert len(claims) == 8
    assert len(caller.start(claims)) == 8
    assert len(caller.progress(claims, 10, "x")) == 8
    assert len(caller.emit(claims, "x", {"a": 1})) == 8
    assert caller.beat("w", claims) == set()
    assert len(caller.rows("select id from howdah.watch(%s::uuid[])", [claims[0].id])) == 1
    assert len(caller.complete(claims[:1], {"a": 1})) == 1
    assert len(caller.fail(claims[1:2])) == 1
    assert len(caller.retry(claims[2:3])) == 1
    assert len(caller.release(claims[3:4])) == 1
    assert len(caller.cancel(claims[4].id)) == 1
    assert len(caller.cancel_held(claims[5:6])) == 1
    assert len(caller.requeue(claims[1].id)) == 1
    caller.execute(
        "update howdah.jobs set status = 'completed' where id operator(pg_catalog.=) %s",
        claims[6].id,
    )
    caller.execute(
        "update howdah.jobs set status = 'pending' where id operator(pg_catalog.=) %s",
        claims[7].id,
    )
    caller.execute(
        "update howdah.jobs set status = 'pending' where id operator(pg_catalog.=) %s",
        claims[4].id,
    )
    caller.recover_stale_jobs()
    caller.promote()
    caller.upkeep()
    caller.rows("select howdah.compact_counts()")
    caller.prepare_days()
    caller.prune()
    caller.rows("select job_type, status, jobs from howdah.queue_depth")
    caller.rows("select id, alive from howdah.worker_health")
    caller.deregister("w")
    assert traces(roles) == []
    assert roles.owner.depth() == roles.owner.counted()
    roles.owner.execute("select howdah.cancel(array(select id from howdah.jobs_live))")


def test_temporary_tables_of_the_same_names_are_ignored(roles: Roles) -> None:
    for session in (roles.worker, roles.owner):
        for table in TABLES:
            session.execute(f"create temp table {table} (like howdah.{howdah_table(table)})")
        session.execute("insert into pg_temp.options values ('max_payload_bytes', '1', '')")
        large = f'{{"a": "{"x" * 1000}"}}'  # large enough that the limit is read
        job = session.value("select howdah.enqueue('temp', %s)", large)
        session.execute("insert into howdah.jobs (job_type) values ('temp')")
        claims = session.claim("temp")
        assert job in {claim.id for claim in claims}
        assert len(session.complete(claims)) == 2
        session.upkeep()
        for table in TABLES:
            expected = 1 if table == "options" else 0
            assert session.value(f"select count(*) from pg_temp.{table}") == expected
            session.execute(f"drop table pg_temp.{table}")
    assert roles.owner.depth() == roles.owner.counted()


@pytest.mark.parametrize("name", ["text", "uuid", "int4", "jsonb", "timestamptz", "interval"])
def test_temporary_types_of_the_same_names_are_ignored(
    roles: Roles, databases: Databases, name: str
) -> None:
    """The check of a domain runs code; a temporary domain is found before pg_catalog's type."""
    (producer,) = roles.producer.column("select session_user")
    for function in ("enqueue('typed')", 'enqueue_many(\'[{"job_type": "typed"}]\')'):
        session = roles.owner.session()  # functions are compiled once per session
        session.execute('set session authorization "' + producer.replace('"', '""') + '"')
        session.execute(
            f"create function pg_temp.leave_trace(pg_catalog.{name}) returns pg_catalog.bool "
            "language plpgsql as $$ begin perform evil.trace(current_user); return true; end $$"
        )
        session.execute(
            f"create domain pg_temp.{name} as pg_catalog.{name} check (pg_temp.leave_trace(value))"
        )
        session.execute(f"select howdah.{function}")
        session.execute("insert into howdah.jobs (job_type) values ('typed')")
    assert traces(roles) == []


def test_every_function_with_a_search_path_names_pg_temp_last(roles: Roles) -> None:
    """pg_temp is searched first if the path does not name it. SQL bodies are bound when created.

    A procedure that commits cannot set a path; it runs with the caller's rights only.
    """
    unsafe = roles.owner.column(
        "select oid::regprocedure::text from pg_proc "
        "where pronamespace = 'howdah'::regnamespace and prosqlbody is null "
        "and not (prokind = 'p' and not prosecdef) "
        "and not coalesce(proconfig, '{}') @> array['search_path=pg_catalog, pg_temp']"
    )
    assert unsafe == []
