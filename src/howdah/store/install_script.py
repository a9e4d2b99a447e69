"""Install script: the install as one SQL statement, for `howdah install`, psql, migration tools.

Comes after   engine_files.py, which reads the engine's files
Comes before  install.py, which runs it, and `howdah sql`, which prints it

The script is a single DO statement. So it is all or nothing, inside a transaction or not, and
drivers that prepare every statement can run it. It takes the lock, checks everything before it
changes anything, and restores the settings that it changes. It can run again.
"""

from __future__ import annotations

from howdah.store import engine_files

# Its errors: HW003 the schema belongs to another role, HW004 tables of a development version,
# HW005 a newer schema, HW006 another schema number than the script starts from.

# The install depends on these settings, so it sets them and restores them.
_SETTINGS = {"search_path": "pg_catalog, pg_temp", "standard_conforming_strings": "on"}

# A schema of another role could run that role's code with our rights: any role that may create
# schemas can create one of this name before us. So this check runs before anything is read.
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
            'install as %s, or drop the schema first if it is not needed',
            v_owner, current_user, v_owner);
    elsif v_foreign is not null then
        raise exception using errcode = 'HW003', message = format(
            'the schema howdah contains an object of another role: %s. '
            'Make %s its owner, or drop it, then install again', v_foreign, current_user);
    end if;
"""

# This reads pg_class, because to_regclass uses a cache: it does not see a schema that another
# process created while this transaction waited for the lock.
_READ_NUMBER = """
    if exists (select from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
               where n.nspname = 'howdah' and c.relname = 'installed') then
        select schema_number, to_jsonb(i) ->> 'tables' into v_number, v_tables
        from howdah.installed as i;
    end if;
"""


def refuse_foreign() -> str:
    """Return the statement that only refuses a schema of another role."""
    return _do(_REFUSE_FOREIGN)


def script(start: int | None = None) -> str:
    """Return the script: from schema number `start` (0: nothing is installed), or from any."""
    starts_from = "from any" if start is None else f"from schema number {start}"
    again = " and can run again" if start in (None, engine_files.SCHEMA_NUMBER) else ""
    title = (
        f"-- howdah, schema number {engine_files.SCHEMA_NUMBER}, {starts_from}: one statement, "
        "for psql or a migration tool.\n"
        f"-- It is all or nothing{again}; your jobs and your settings stay as they are.\n"
    )
    parts = [
        "\n    perform pg_advisory_xact_lock(1752135524, 3);  -- one install at a time\n",
        _REFUSE_FOREIGN,
        _READ_NUMBER,
        _refuse_number(start),
        *_migrations(start),
        *_engine(start),
        _execute(engine_files.record_installed()),
        _execute(engine_files.finish_install()),
    ]
    return title + _do("".join(parts))


def _do(body: str) -> str:
    """Write a DO statement that sets the settings, and restores them at its end."""
    variables = {name: f"v_{name}" for name in _SETTINGS}
    declared = "".join(
        f"    {variable} text := pg_catalog.current_setting('{name}');\n"
        for name, variable in variables.items()
    )
    pinned = "".join(
        f"    perform pg_catalog.set_config('{name}', '{value}', true);\n"
        for name, value in _SETTINGS.items()
    )
    restored = "".join(
        f"    perform pg_catalog.set_config('{name}', {variable}, true);\n"
        for name, variable in variables.items()
    )
    return (
        f"do $howdah$\ndeclare\n{declared}"
        "    v_owner text; v_ours bool; v_foreign text;\n"
        "    v_number int; v_tables text;  -- what is installed; null: nothing\n"
        f"begin\n{pinned}{body}\n{restored}end;\n$howdah$;\n"
    )


def _refuse_number(start: int | None) -> str:
    """Write the checks of what is installed; they run before any change."""
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
            v_number), hint = format('`howdah sql --from %s` prints its upgrade.', v_number);
    end if;
"""
    else:
        checks = f"""
    if v_number is null then
        raise exception using errcode = 'HW006',
            message = 'this script upgrades from howdah schema number {start}, '
                'and this database has no howdah schema',
            hint = '`howdah sql` prints the whole engine.';
    elsif v_number <> {start} then
        raise exception using errcode = 'HW006', message = format(
            'this script upgrades from howdah schema number {start}, and this database has '
            'number %s', v_number),
            hint = format('`howdah sql --from %s` prints its upgrade.', v_number);
    end if;
"""
    return f"""{checks}
    if v_number = {number} and v_tables is distinct from '{engine_files.tables_fingerprint()}' then
        raise exception using errcode = 'HW004', message =
            '{development_tables_message(number)}';
    end if;
"""


def development_tables_message(number: int) -> str:
    """Say what to do about the tables of a development version."""
    return (
        "the howdah schema in this database was made by a development version, whose tables "
        f"are not those of schema number {number}, and no migration can upgrade them: "
        "`drop schema howdah cascade` deletes it and its jobs, then run `howdah install`"
    )


def _migrations(start: int | None) -> list[str]:
    """Write the migrations of the tables; a fresh install needs none."""
    if start == 0:
        return []
    numbered = sorted(engine_files.migrations().items())
    if start is None:
        return [
            f"\n    if v_number < {to} then{_execute(text)}    end if;\n" for to, text in numbered
        ]
    return [_execute(text) for to, text in numbered if to > start]


def _engine(start: int | None) -> list[str]:
    """Write the engine's files in their order: tables are created once, functions each time."""
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
