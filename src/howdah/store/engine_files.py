"""Engine files: the SQL files of the engine, in the order in which they are installed.

The numbers in `sql/` are the order. Schema and tables (00, 10, 20) are created once and changed
by migrations. Everything else is replaced whenever it differs from what is installed.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

SCHEMA_NUMBER = 1
COMPATIBLE_FROM = 1

_HOLDS_DATA = ("00_", "10_", "20_")


class SqlFile(NamedTuple):
    """One file of the engine."""

    path: str
    text: str

    @property
    def holds_data(self) -> bool:
        return self.path.startswith(_HOLDS_DATA)


@cache
def engine() -> tuple[SqlFile, ...]:
    """Read every file of the engine, in order."""
    return tuple(sorted(_walk(files("howdah") / "sql", "")))


def _walk(folder: Traversable, prefix: str) -> list[SqlFile]:
    sql_files: list[SqlFile] = []
    for entry in folder.iterdir():
        path = f"{prefix}{entry.name}"
        if entry.is_dir() and path not in ("migrations", "grants"):
            sql_files += _walk(entry, f"{path}/")
        elif path.endswith(".sql"):
            sql_files.append(SqlFile(path, entry.read_text(encoding="utf-8")))
    return sql_files


@cache
def migrations() -> dict[int, str]:
    """Return the migrations by the schema number that each of them reaches."""
    folder = files("howdah") / "sql" / "migrations"
    return {
        int(entry.name.partition("_")[0]): entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    }


def functions() -> str:
    """Return the SQL that every upgrade runs again."""
    return "\n".join(file.text for file in engine() if not file.holds_data)


@cache
def function_names() -> frozenset[str]:
    """Return the names of all functions and procedures of the engine."""
    created = r"^create or replace (?:function|procedure) howdah\.(\w+)"
    return frozenset(re.findall(created, functions(), re.MULTILINE))


@cache
def fingerprint() -> str:
    """Return a hash of the functions."""
    return hashlib.sha256(functions().encode()).hexdigest()[:32]


@cache
def tables_fingerprint() -> str:
    """Return a hash of the tables, without comments and white space."""
    text = "\n".join(file.text for file in engine() if file.holds_data)
    code = re.sub(r"\s+", "", re.sub(r"--[^\n]*", "", text))
    return hashlib.sha256(code.encode()).hexdigest()[:32]


def record_installed() -> str:
    """Return the statement that records what is installed."""
    return (
        "insert into howdah.installed (schema_number, compatible_from, fingerprint, tables)\n"
        f"values ({SCHEMA_NUMBER}, {COMPATIBLE_FROM}, '{fingerprint()}',\n"
        f"    '{tables_fingerprint()}')\n"
        "on conflict (one) do update set schema_number = excluded.schema_number,\n"
        "    compatible_from = excluded.compatible_from, fingerprint = excluded.fingerprint,\n"
        "    tables = excluded.tables, installed_at = now()\n"
        "where (installed.schema_number, installed.compatible_from, installed.fingerprint,\n"
        "    installed.tables) is distinct from (excluded.schema_number,\n"
        "    excluded.compatible_from, excluded.fingerprint, excluded.tables);\n"
    )


def finish_install() -> str:
    """Return the last statements: revoke what is public, create the partitions of coming days."""
    return (
        "revoke all on all routines in schema howdah from public;\n"
        "do $$ begin perform howdah.prepare_days(); end $$;\n"
    )


def grants(producer: str, worker: str, observer: str) -> str:
    """Return the GRANTs of the three roles, under these names, as one statement."""
    names = {"producer": producer, "worker": worker, "observer": observer}
    quoted = {f"howdah_{role}": '"' + name.replace('"', '""') + '"' for role, name in names.items()}
    # in one pass, because a name may look like a placeholder; comments stay as they are
    placeholder = re.compile("|".join(quoted))
    text = (files("howdah") / "sql" / "grants" / "roles.sql").read_text(encoding="utf-8")
    granted = "".join(
        line if line.startswith("--") else placeholder.sub(lambda match: quoted[match[0]], line)
        for line in text.splitlines(keepends=True)
    )
    tag = "howdah"
    while f"${tag}$" in granted:  # a role's name may contain the tag
        tag += "_"
    return f"do ${tag}$\nbegin\n{granted}\nend;\n${tag}$;\n"
