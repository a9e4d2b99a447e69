"""The Python that the pages show exists: imports, methods, and the defaults of options."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
from datetime import timedelta
from functools import cache
from pathlib import Path

import pytest

import howdah
from tests.support.processes import ROOT
from tests.surface.pages import blocks, by_name, pages, prose, spans

SHOWN = [page for page in pages() if page.parts[0] not in (".github", "bench", "src", "tests")]
OBJECTS: dict[str, tuple[type, ...]] = {
    "queue": (howdah.Queue, howdah.SyncQueue),
    "sync_queue": (howdah.SyncQueue,),
    "handle": (howdah.Handle, howdah.SyncHandle),
    "ctx": (howdah.JobContext,),
}
USED = re.compile(rf"\b({'|'.join(OBJECTS)})\.(\w+)")
IMPORT = re.compile(r"^from (howdah[\w.]*) import (?:\(([^)]*)\)|([^\n(#]+))", re.MULTILINE)
DEFAULT = re.compile(r"`(\w+)` \(([\d,.]+(?: ?[a-z]+)?)(?:[;)])")


def code(page: Path) -> list[str]:
    return [*spans(page), *(block.text for block in blocks(page) if block.language == "python")]


def test_the_pages_show_python() -> None:
    assert sum(len(IMPORT.findall(piece)) for page in SHOWN for piece in code(page)) > 10
    assert sum(len(USED.findall(piece)) for page in SHOWN for piece in code(page)) > 60


@pytest.mark.parametrize("page", SHOWN, ids=by_name)
def test_every_name_that_a_page_imports_exists(page: Path) -> None:
    for piece in code(page):
        for module, several, few in IMPORT.findall(piece):
            for name in re.findall(r"\w+", several or few):
                assert has(module, name), f"from {module} import {name}"


def has(module: str, name: str) -> bool:
    if hasattr(importlib.import_module(module), name):
        return True
    return importlib.util.find_spec(f"{module}.{name}") is not None


@pytest.mark.parametrize("page", SHOWN, ids=by_name)
def test_every_method_that_a_page_uses_exists(page: Path) -> None:
    for piece in code(page):
        for name, attribute in USED.findall(piece):
            known = any(attribute in members(cls) for cls in OBJECTS[name])
            assert known, f"{name}.{attribute}"


@cache
def members(cls: type) -> set[str]:
    """Return the methods, properties and attributes of a class."""
    own = {
        node.attr
        for parent in cls.__mro__[:-1]
        if parent.__module__.startswith("howdah.")
        for node in ast.walk(ast.parse(inspect.getsource(parent)))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }
    return {name for name in {*dir(cls), *own} if not name.startswith("_")}


def defaults() -> dict[str, object]:
    """Return the default of each option of a queue, of a worker and of the whole database."""
    options = (ROOT / "src/howdah/sql/20_tables/options.sql").read_text(encoding="utf-8")
    return dict(re.findall(r"^ +\('(\w+)', +'([^']+)'", options, re.MULTILINE)) | {
        name: parameter.default
        for function in (howdah.Queue.worker, howdah.Queue.__init__)
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is not parameter.empty
    }


@pytest.mark.parametrize("page", SHOWN, ids=by_name)
def test_every_default_that_a_page_names_is_right(page: Path) -> None:
    known = defaults()
    for name, value in DEFAULT.findall(prose(page)):
        if name in known:
            assert same(known[name], value), f"{name} is {known[name]}, not {value}"


SECONDS = {"s": 1, "min": 60, "minutes": 60, "hours": 3600, "day": 86400, "days": 86400}


def same(default: object, value: str) -> bool:
    number, _, unit = value.partition(" ")
    if isinstance(default, timedelta):
        return default == timedelta(seconds=float(number) * SECONDS[unit])
    return str(default) == value.replace(",", "")
