"""The pages name only words of the log that exist, and the reference has the level of each.

tests/metrics/test_vocabulary.py compares the words of docs/reference/logs.md with the code.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.support.processes import ROOT
from tests.surface.pages import by_name, pages, spans, text

REFERENCE = Path("docs/reference/logs.md")
WORD = re.compile(r"[a-z]+\.[a-z_]+")
DOCUMENTED = {span for span in spans(REFERENCE) if WORD.fullmatch(span)}
SUBJECTS = {word.partition(".")[0] for word in DOCUMENTED}

# Methods and files whose names look like a word of the log.
OTHER = {"job.enqueue", "job.options", "job.draft", "job.data", "worker.run_until_idle"}


def test_the_reference_has_words() -> None:
    assert len(DOCUMENTED) > 40


@pytest.mark.parametrize("page", [page for page in pages() if page != REFERENCE], ids=by_name)
def test_every_word_of_the_log_that_a_page_names_is_documented(page: Path) -> None:
    named = {
        span
        for span in spans(page)
        if WORD.fullmatch(span)
        and span.partition(".")[0] in SUBJECTS
        and not span.endswith((".py", ".sql", ".md"))
    }
    assert named - DOCUMENTED - OTHER == set()


def test_the_reference_names_each_word_once() -> None:
    rows = [line for line in text(REFERENCE).splitlines() if line.startswith("| `")]
    words = [word for row in rows for word in re.findall(r"`([a-z]+\.[a-z_]+)`", row.split("|")[1])]
    assert len(words) == len(set(words))


def logged_levels() -> dict[str, set[str]]:
    """Return the levels at which the package logs each word."""
    levels: defaultdict[str, set[str]] = defaultdict(set)
    for path in (ROOT / "src/howdah").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="_log"), attr=level),
                    args=[ast.Constant(value=str() as message), *_],
                ) if level in ("debug", "info", "warning", "error"):
                    levels[message.split()[0].rstrip(":")].add(level)
                case _:
                    pass
    return levels


def test_the_reference_has_the_level_of_each_word() -> None:
    levels = logged_levels()
    assert len(levels) > 30
    for row in text(REFERENCE).splitlines():
        if row.startswith("| `"):
            words, documented = row.split("|")[1:3]
            for word in re.findall(r"`([a-z]+\.[a-z_]+)`", words):
                if word in levels:
                    assert {documented.strip()} == levels[word], word
