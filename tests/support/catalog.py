"""Catalog: everything that a schema consists of, as a value to compare."""

from __future__ import annotations

import psycopg

QUERIES = {
    "columns": """
        select c.relname, c.relkind, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod),
               a.attnotnull, pg_get_expr(d.adbin, d.adrelid)
        from pg_class as c join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0
        left join pg_attrdef as d on d.adrelid = c.oid and d.adnum = a.attnum
        where c.relnamespace = 'howdah'::regnamespace and not a.attisdropped""",
    "relations": """
        select c.relname, c.relkind, c.reloptions::text, c.relacl::text,
               pg_get_partkeydef(c.oid), pg_get_expr(c.relpartbound, c.oid)
        from pg_class as c where c.relnamespace = 'howdah'::regnamespace""",
    "constraints": """
        select conrelid::regclass::text, contypid::regtype::text, conname, pg_get_constraintdef(oid)
        from pg_constraint where connamespace = 'howdah'::regnamespace""",
    "indexes": "select tablename, indexname, indexdef from pg_indexes where schemaname = 'howdah'",
    "views": "select viewname, definition from pg_views where schemaname = 'howdah'",
    "triggers": """
        select t.tgrelid::regclass::text, t.tgname, t.tgenabled, pg_get_triggerdef(t.oid)
        from pg_trigger as t join pg_class as c on c.oid = t.tgrelid
        where c.relnamespace = 'howdah'::regnamespace""",
    "functions": """
        select oid::regprocedure::text, pg_get_functiondef(oid), proacl::text
        from pg_proc where pronamespace = 'howdah'::regnamespace""",
    "schema": "select nspname, nspacl::text from pg_namespace where nspname = 'howdah'",
    "moves": "select verb, source, target, meaning from howdah.moves",
    "options": "select name, value, meaning from howdah.options",
    "installed": "select schema_number, compatible_from, fingerprint from howdah.installed",
}


def catalog(dsn: str) -> dict[str, list[str]]:
    """Describe everything of howdah in a database."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        return {
            name: sorted(str(row) for row in connection.execute(query.encode()))
            for name, query in QUERIES.items()
        }
