"""The pages name only tables, views and functions of the engine, and the reference has them all."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path

import pytest

import howdah
from tests.support.processes import ROOT
from tests.surface.pages import blocks, by_name, pages, spans, text

SQL = ROOT / "src/howdah/sql"
REFERENCE = Path("docs/reference/sql.md")
MADE = re.compile(
    r"^create (?:or replace |unique )?(function|procedure|view|table|type|domain|sequence) "
    r"(?:if not exists )?howdah\.(\w+)",
    re.MULTILINE,
)
NAMED = re.compile(r"\bhowdah\.([a-z]\w*)(?!\w)")
CALLED = re.compile(r"\b([a-z]\w*)\(")

# Names after `howdah.` that are no objects of the schema.
SETTING = {"clock_offset", "transaction"}
JOB_TYPES_AND_EVENTS = {"bulk", "dropped"}
FILES = {"sql", "fish", "json"}  # howdah.sql, howdah.fish, howdah.json

# Functions of PostgreSQL that the pages call in SQL.
OF_POSTGRES = {
    *(
        "now",
        "array",
        "values",
        "count",
        "quote_ident",
        "current_database",
        "set_config",
        "coalesce",
    ),
    *(
        "any",
        "in",
        "case",
        "pg_sleep",
        "sum",
        "max",
        "min",
        "interval",
        "exists",
        "to_jsonb",
        "range",
    ),
}


@cache
def engine(*kinds: str) -> set[str]:
    """Return the names that the engine makes, of these kinds or of all."""
    return {
        name
        for path in SQL.rglob("*.sql")
        for kind, name in MADE.findall(path.read_text(encoding="utf-8"))
        if not kinds or kind in kinds
    }


def triggers() -> set[str]:
    """Return the functions that only triggers call."""
    declared = re.compile(r"^create or replace function howdah\.(\w+)\(\)\s*returns trigger", re.M)
    return {
        name
        for path in SQL.rglob("*.sql")
        for name in declared.findall(path.read_text(encoding="utf-8"))
    }


def is_python(name: str) -> bool:
    """Say whether `howdah.name` is a module or a name of the Python package."""
    return hasattr(howdah, name) or importlib.util.find_spec(f"howdah.{name}") is not None


def test_the_engine_has_tables_and_functions() -> None:
    assert {"jobs", "workers"} <= engine("table")
    assert {"claim", "complete"} <= engine("function")


@pytest.mark.parametrize("page", pages(), ids=by_name)
def test_every_object_that_a_page_names_exists(page: Path) -> None:
    code = [*spans(page), *(block.text for block in blocks(page))]
    named = {name for piece in code for name in NAMED.findall(piece)}
    known = engine() | SETTING | JOB_TYPES_AND_EVENTS | FILES
    assert {name for name in named - known if not is_python(name)} == set()


@pytest.mark.parametrize("page", pages(), ids=by_name)
def test_every_function_that_a_page_calls_in_sql_exists(page: Path) -> None:
    statements = [block.text for block in blocks(page) if block.language == "sql"]
    if page == REFERENCE:
        statements = []  # signatures, written from the engine itself
    called = {name for text in statements for name in CALLED.findall(text)}
    tables = {"jobs", "jobs_live", "orders"}  # insert into jobs (…)
    assert called - engine("function", "procedure") - OF_POSTGRES - tables == set()


def test_the_reference_names_every_function_view_and_table() -> None:
    page = text(REFERENCE)
    wanted = engine("function", "procedure", "view", "table") - triggers()
    assert {name for name in wanted if f"howdah.{name}" not in page} == set()


@pytest.mark.parametrize("page", pages(), ids=by_name)
def test_every_option_of_the_queue_that_a_page_sets_exists(page: Path) -> None:
    options = (SQL / "20_tables/options.sql").read_text(encoding="utf-8")
    for block in blocks(page):
        for name in re.findall(r"howdah\.options .*where name = '(\w+)'", block.text):
            assert f"('{name}'" in options, name
