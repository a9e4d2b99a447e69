"""The docstring of each package is a map: it names every module of its folder, and nothing else."""

from __future__ import annotations

import ast
import re

import pytest

from tests.support.processes import ROOT
from tests.surface.pages import files

MAPPED = ("src/howdah", "bench", "tests/support", "tools")
ELSEWHERE = {
    "src/howdah": "its docstring is a first program; ARCHITECTURE.md is the map",
    "bench/peers": "one folder per peer, listed by its registry",
}
# One line for each module: `claim.py  what it does`, `process/  …`, or the name alone.
ENTRY = re.compile(r"^ *(\w+(?=  )|\w+\.py|\w+/) +\S", re.MULTILINE)
NAMED = re.compile(r"(?<![\w/*])(\w+\.py)\b")


def parts(folder: str) -> set[str]:
    """Return the modules and sub-packages of a folder: `claim.py`, `process/`."""
    inside = [path.relative_to(folder) for path in files() if path.is_relative_to(folder)]
    modules = {path.name for path in inside if len(path.parts) == 1 and path.suffix == ".py"}
    packages = {f"{path.parts[0]}/" for path in inside if path.parts[1:] == ("__init__.py",)}
    return (modules | packages) - {"__init__.py", "__main__.py"}


PACKAGES = [
    str(path.parent)
    for path in files()
    if path.name == "__init__.py"
    and str(path).startswith(tuple(f"{folder}/" for folder in MAPPED))
    and str(path.parent) not in ELSEWHERE
    and str(path.parent.parent) != "bench/peers"  # each has a driver, as bench/__init__.py says
    and len(parts(str(path.parent))) > 1
]


def docstring(folder: str) -> str:
    tree = ast.parse((ROOT / folder / "__init__.py").read_text(encoding="utf-8"))
    return ast.get_docstring(tree) or ""


def test_there_are_packages_with_maps() -> None:
    assert {"src/howdah/claim", "src/howdah/store", "tests/support", "bench"} <= set(PACKAGES)


@pytest.mark.parametrize("folder", PACKAGES)
def test_the_map_of_a_package_names_its_modules_and_no_others(folder: str) -> None:
    entries = [name.removesuffix(".py").rstrip("/") for name in ENTRY.findall(docstring(folder))]
    assert sorted(entries) == sorted(part.removesuffix(".py").rstrip("/") for part in parts(folder))


@pytest.mark.parametrize("folder", [*PACKAGES, *ELSEWHERE])
def test_every_module_that_a_package_names_exists(folder: str) -> None:
    known = {path.name for path in files()}
    assert [name for name in NAMED.findall(docstring(folder)) if name not in known] == []


def test_the_architecture_names_every_module_and_package_of_the_root() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+(?:\.py|/))", page))
    assert parts("src/howdah") - named == set()


def test_the_registry_of_peers_names_every_peer() -> None:
    peers = {part.rstrip("/") for part in parts("bench/peers") if part.endswith("/")}
    (registry,) = (part for part in parts("bench/peers") if part.endswith(".py"))
    text = (ROOT / "bench/peers" / registry).read_text(encoding="utf-8")
    assert {peer for peer in peers if not re.search(rf"\b{peer}\b", text)} == set()
