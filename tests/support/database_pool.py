"""Database pool: guarded databases, each used by one test at a time.

Creating a database takes longer than most tests. So a database that comes back with an unchanged
schema is emptied and given to the next test. If a test changed the schema or a setting, its
database is dropped.
"""

from __future__ import annotations

import psycopg

from tests.support.databases import Databases

# Everything that a test can change and that emptying the tables does not undo.
FINGERPRINT = b"""
    select md5(string_agg(thing, '|' order by thing)) from (
        select concat_ws(' ', relnamespace, relname, relkind, relowner, relacl, reloptions) as thing
        from pg_class where relnamespace in ('howdah'::regnamespace, 'guard'::regnamespace)
        union all
        select concat_ws(' ', oid, xmin) from pg_proc
        where pronamespace in ('howdah'::regnamespace, 'guard'::regnamespace)
        union all
        select concat_ws(' ', tgrelid, tgname, tgenabled) from pg_trigger
        union all
        select concat_ws(' ', conrelid, contypid, conname) from pg_constraint
        union all
        select concat_ws(' ', nspname, nspacl) from pg_namespace
        where nspname !~ '^pg_(toast_)?temp'
        union all
        select setconfig::text from pg_db_role_setting
        union all
        select concat_ws(' ', name, value) from howdah.options
        union all
        select concat_ws(' ', verb, source, target) from howdah.moves
        union all
        select concat_ws(' ', schema_number, compatible_from, fingerprint) from howdah.installed
    ) as things
"""

EMPTY = b"""
    set session_replication_role = replica;
    delete from howdah.jobs;
    delete from howdah.job_events;
    delete from howdah.job_steps;
    delete from howdah.job_signals;
    delete from howdah.workers;
    delete from howdah.schedules;
    delete from howdah.finished_counts;
    delete from howdah.measures;
    delete from howdah.measure_history;
    delete from howdah.limit_history;
    delete from howdah.upkeep_log;
    delete from howdah.paused_types;
    delete from howdah.drain_requests;
    delete from howdah.job_types;
    delete from howdah.unique_keys;
    delete from howdah.type_limits;
    delete from howdah.limits;
    delete from howdah.rate_states;
    delete from howdah.admission_requests;
    delete from guard.leaving;
    select setval('howdah.search_behind_until', 1, false);
    select pg_stat_reset();  -- the doctor counts dead rows
"""


class DatabasePool:
    """Lends databases to tests."""

    def __init__(self, databases: Databases) -> None:
        self._databases = databases
        self._free: list[str] = []
        self._fingerprints: dict[str, str] = {}

    def take(self) -> str:
        """Lend a database with the schema, the guard and nothing else in it; returns its DSN."""
        if not self._databases.made_today:
            self._free.clear()
        if self._free:
            return self._free.pop()
        dsn = self._databases.create_guarded()
        with psycopg.connect(dsn, autocommit=True) as connection:
            self._fingerprints[dsn] = _fingerprint(connection)
        return dsn

    def give_back(self, dsn: str) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            unchanged = _fingerprint(connection) == self._fingerprints[dsn]
            if unchanged:
                connection.execute(EMPTY)
        if unchanged:
            self._free.append(dsn)
        else:
            self._databases.drop(dsn)


def _fingerprint(connection: psycopg.Connection) -> str:
    row = connection.execute(FINGERPRINT).fetchone()
    assert row is not None
    return row[0]
