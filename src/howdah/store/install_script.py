"""Script: the install as one SQL statement, for `howdah install`, psql and migration tools.

Comes after   bundle.py, which reads the engine's files
Comes before  install.py, which runs it, and `howdah sql`, which prints it

The script is a single DO statement, so it is all or nothing with and without a transaction around
it, and a driver that prepares every statement takes it too. It takes the lock, refuses what it does
not fit before it changes anything, and puts back the settings that it changes. It can run again.
"""

from __future__ import annotations

from howdah.store import engine_files

# What it refuses with: HW003 a schema of another role, HW004 tables of a development version,
# HW005 a newer schema, HW006 another number than the one that the script leads on from.

# The install depends on these, so it sets them and puts them back.
_SETTINGS = {"search_path": "pg_catalog, pg_temp", "standard_conforming_strings": "on"}

# A schema that is not ours could run its owner's code with our rights: whoever may create schemas
# in a database may have made one of this name before us. So this comes before anything is read.
_REFUSE_FOREIGN = """
    select pg_get_userbyid(n.nspowner), n.nspowner = me.oid,
           (select min(format('%s (%s)', owned.name, pg_get_userbyid(owned.owner)))
            from (select relname::text, relowner from pg_class where relnamespace = n.oid
                  union all
                  select proname::text, proowner from pg_proc where pronamespace = n.oid
                  union all
                  select typname::text, typowner from pg_type where typnamespace = n.oid
                 ) as owned (name, owner)
            where owned.owner <> me.oid)
    into v_owner, v_ours, v_foreign
    from pg_namespace as n, pg_roles as me
    where n.nspname = 'howdah' and me.rolname = current_user;
    if not v_ours then
        raise exception using errcode = 'HW003', message = format(
            'the schema howdah in this database belongs to the role %s, and you are %s: '
            'install as %s, or, if it is not meant to be there, drop it first',
            v_owner, current_user, v_owner);
    elsif v_foreign is not null then
        raise exception using errcode = 'HW003', message = format(
            'the schema howdah holds something that is not yours: %s. '
            'Make %s its owner, or drop it, then install again', v_foreign, current_user);
    end if;
"""

# Read from pg_class and not by to_regclass: that asks a cache, which does not hear of the schema
# that another process made while this transaction waited for the lock.
_READ_NUMBER = """
    if exists (select from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
               where n.nspname = 'howdah' and c.relname = 'installed') then
        select schema_number, to_jsonb(i) ->> 'tables' into v_number, v_tables
        from howdah.installed as i;
    end if;
"""


def refuse_foreign() -> str:
    """Return the statement that refuses a schema of somebody else, and changes nothing."""
    return _do(_REFUSE_FOREIGN)


def whole(start: int | None = None) -> str:
    """Return the script: from schema number `start` (0: nothing is installed), or from any."""
    way = "from any" if start is None else f"from schema number {start}"
    again = " and can run again" if start in (None, engine_files.SCHEMA_NUMBER) else ""
    title = (
        f"-- howdah, schema number {engine_files.SCHEMA_NUMBER}, {way}: one statement, for psql or "
        "a migration tool.\n"
        f"-- It is all or nothing{again}; your jobs and your settings stay as they are.\n"
    )
    parts = [
        "\n    perform pg_advisory_xact_lock(1752135524, 3);  -- one install at a time\n",
        _REFUSE_FOREIGN,
        _READ_NUMBER,
        _refuse_number(start),
        *_migrations(start),
        *_engine(start),
        _execute(engine_files.record()),
        _execute(engine_files.closing()),
    ]
    return title + _do("".join(parts))


def _do(body: str) -> str:
    """Write a DO statement that sets the settings, and puts them back at its end."""
    kept = {name: f"v_{name}" for name in _SETTINGS}
    declared = "".join(
        f"    {variable} text := pg_catalog.current_setting('{name}');\n"
        for name, variable in kept.items()
    )
    pinned = "".join(
        f"    perform pg_catalog.set_config('{name}', '{value}', true);\n"
        for name, value in _SETTINGS.items()
    )
    restored = "".join(
        f"    perform pg_catalog.set_config('{name}', {variable}, true);\n"
        for name, variable in kept.items()
    )
    return (
        f"do $howdah$\ndeclare\n{declared}"
        "    v_owner text; v_ours bool; v_foreign text;\n"
        "    v_number int; v_tables text;  -- what is installed; null: nothing\n"
        f"begin\n{pinned}{body}\n{restored}end;\n$howdah$;\n"
    )


def _refuse_number(start: int | None) -> str:
    """Write the checks of what is installed: they come before anything is changed."""
    number = engine_files.SCHEMA_NUMBER
    if start is None:
        checks = f"""
    if v_number > {number} then
        raise exception using errcode = 'HW005', message = format(
            'the howdah schema in this database has number %s, newer than this code''s {number}: '
            'upgrade the howdah package', v_number);
    end if;
"""
    elif start == 0:
        checks = """
    if v_number is not null then
        raise exception using errcode = 'HW006', message = format(
            'this script is for a database without howdah, and this one has schema number %s',
            v_number), hint = format('`howdah sql --from %s` prints the way from there.', v_number);
    end if;
"""
    else:
        checks = f"""
    if v_number is null then
        raise exception using errcode = 'HW006',
            message = 'this script leads on from howdah schema number {start}, '
                'and this database has no howdah schema',
            hint = '`howdah sql` prints the whole engine.';
    elsif v_number <> {start} then
        raise exception using errcode = 'HW006', message = format(
            'this script leads on from howdah schema number {start}, and this database has '
            'number %s', v_number),
            hint = format('`howdah sql --from %s` prints the way from there.', v_number);
    end if;
"""
    return f"""{checks}
    if v_number = {number} and v_tables is distinct from '{engine_files.tables()}' then
        raise exception using errcode = 'HW004', message =
            '{between_releases(number)}';
    end if;
"""


def between_releases(number: int) -> str:
    """Say what to do about the tables of a development state."""
    return (
        "the howdah schema in this database was made by a development version, whose tables "
        f"are not those of schema number {number}, and no migration leads on from "
        "there: `drop schema howdah cascade` forgets it and its jobs, then run `howdah install`"
    )


def _migrations(start: int | None) -> list[str]:
    """Write the way of the tables; a fresh install needs none of it."""
    if start == 0:
        return []
    found = sorted(engine_files.migrations().items())
    if start is None:
        return [f"\n    if v_number < {to} then{_execute(text)}    end if;\n" for to, text in found]
    return [_execute(text) for to, text in found if to > start]


def _engine(start: int | None) -> list[str]:
    """Write the engine's files in their order: tables are made once, functions each time."""
    parts: list[str] = []
    for file in engine_files.engine():
        text = _execute(f"-- ── {file.path} ──\n\n{file.text}")
        if file.holds_data and start is None:
            parts.append(f"\n    if v_number is null then{text}    end if;\n")
        elif start == 0 or not file.holds_data:
            parts.append(text)
    return parts


def _execute(text: str) -> str:
    assert "$sql$" not in text
    assert "$howdah$" not in text
    return f"\n    execute $sql$\n{text.rstrip()}\n$sql$;\n"
