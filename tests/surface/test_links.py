"""Every link of a page leads to a file and a heading that exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.support.processes import ROOT
from tests.surface.pages import FENCE, SPAN, by_name, files, pages, text

LINK = re.compile(r"\]\(([^()\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
OUTSIDE = ("http://", "https://", "mailto:")

ALL = [path for path in files() if path.suffix == ".md"]


def targets(page: Path) -> list[str]:
    """Return what the links of a page lead to, without those to other sites."""
    prose = SPAN.sub("", FENCE.sub("", text(page)))
    linked = [markdown or html for markdown, html in LINK.findall(prose)]
    return [target for target in linked if not target.startswith(OUTSIDE)]


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as a code host makes them."""
    made: set[str] = set()
    for heading in HEADING.findall(FENCE.sub("", text(page))):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        made.add(next(name for name in numbered(anchor) if name not in made))
    return made


def numbered(anchor: str) -> list[str]:
    """Return the names that a heading gets when others before it are the same."""
    return [anchor, *(f"{anchor}-{n}" for n in range(1, 10))]


def test_there_are_pages_with_links() -> None:
    assert len(ALL) > 40
    assert sum(len(targets(page)) for page in ALL) > 150


@pytest.mark.parametrize("page", ALL, ids=by_name)
def test_every_link_has_a_target(page: Path) -> None:
    for target in targets(page):
        name, _, anchor = target.partition("#")
        file = (ROOT / page.parent / name).resolve() if name else (ROOT / page)
        assert file.exists(), f"{target}: no such file"
        if anchor:
            assert anchor in anchors(file.relative_to(ROOT)), f"{target}: no such heading"


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [Path("README.md")]
    while waiting:
        page = waiting.pop()
        if page in seen:
            continue
        seen.add(page)
        linked = (ROOT / page.parent / target.partition("#")[0] for target in targets(page))
        inside = (file.resolve().relative_to(ROOT) for file in linked)
        waiting += [file for file in inside if file.suffix == ".md" and (ROOT / file).is_file()]
    read_in_place = {
        page for page in pages() if page.parts[0] in (".github", "bench", "src", "tests")
    }
    assert set(pages()) - seen - read_in_place == set()
