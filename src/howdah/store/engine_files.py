"""Bundle: the engine's SQL files, in the order in which they are installed.

The numbers in `sql/` are the order. What holds data is made once (00, 10, 20) and changed
by migrations; everything else is replaced whenever it differs from what is installed.
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


def _walk(folder: Traversable, below: str) -> list[SqlFile]:
    found: list[SqlFile] = []
    for entry in folder.iterdir():
        path = f"{below}{entry.name}"
        if entry.is_dir() and path not in ("migrations", "grants"):
            found += _walk(entry, f"{path}/")
        elif path.endswith(".sql"):
            found.append(SqlFile(path, entry.read_text(encoding="utf-8")))
    return found


@cache
def migrations() -> dict[int, str]:
    """Return the migrations by the schema number each of them leads to."""
    folder = files("howdah") / "sql" / "migrations"
    return {
        int(entry.name.partition("_")[0]): entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    }


def functions() -> str:
    """Return everything that is replaced on upgrade."""
    return "\n".join(file.text for file in engine() if not file.holds_data)


@cache
def function_names() -> frozenset[str]:
    """Return the names of all functions and procedures that an install leaves behind."""
    made = r"^create or replace (?:function|procedure) howdah\.(\w+)"
    return frozenset(re.findall(made, functions(), re.MULTILINE))


@cache
def fingerprint() -> str:
    """Tell one version of the functions from another."""
    return hashlib.sha256(functions().encode()).hexdigest()[:32]


@cache
def tables() -> str:
    """Tell one state of the tables from another; remarks and spaces do not count."""
    text = "\n".join(file.text for file in engine() if file.holds_data)
    bare = re.sub(r"\s+", "", re.sub(r"--[^\n]*", "", text))
    return hashlib.sha256(bare.encode()).hexdigest()[:32]


def record() -> str:
    """Return the statement that writes down what is installed."""
    return (
        "insert into howdah.installed (schema_number, compatible_from, fingerprint, tables)\n"
        f"values ({SCHEMA_NUMBER}, {COMPATIBLE_FROM}, '{fingerprint()}', '{tables()}')\n"
        "on conflict (one) do update set schema_number = excluded.schema_number,\n"
        "    compatible_from = excluded.compatible_from, fingerprint = excluded.fingerprint,\n"
        "    tables = excluded.tables, installed_at = now()\n"
        "where (installed.schema_number, installed.compatible_from, installed.fingerprint,\n"
        "    installed.tables) is distinct from (excluded.schema_number,\n"
        "    excluded.compatible_from, excluded.fingerprint, excluded.tables);\n"
    )


def closing() -> str:
    """Return what ends every install: days ahead, and nothing open to everybody."""
    return (
        "revoke all on all routines in schema howdah from public;\n"
        "do $$ begin perform howdah.prepare_days(); end $$;\n"
    )


def grants(producer: str, worker: str, observer: str) -> str:
    """Return the GRANTs of the three roles, under these names: one statement, as script.py's is."""
    names = {"producer": producer, "worker": worker, "observer": observer}
    quoted = {f"howdah_{role}": '"' + name.replace('"', '""') + '"' for role, name in names.items()}
    # in one pass, so that a name is never read again; and not in comments, which end with a line
    placeholder = re.compile("|".join(quoted))
    text = (files("howdah") / "sql" / "grants" / "roles.sql").read_text(encoding="utf-8")
    granted = "".join(
        line if line.startswith("--") else placeholder.sub(lambda found: quoted[found[0]], line)
        for line in text.splitlines(keepends=True)
    )
    tag = "howdah"
    while f"${tag}$" in granted:  # a role may have any name
        tag += "_"
    return f"do ${tag}$\nbegin\n{granted}\nend;\n${tag}$;\n"
