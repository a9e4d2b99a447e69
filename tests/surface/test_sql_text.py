"""Only store/, observe/ and embedded/ hold SQL text, and observe/ only reads.

The tests read the string literals of every module and look for SQL statements.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.store import engine_files

PACKAGE = Path(__file__).resolve().parents[2] / "src/howdah"
HOLDS_SQL = ("store", "observe", "embedded")

_STATEMENT = re.compile(
    r"""
    ^\s*select\s(?!one\b|a\b|the\b)        # a whole query
    | \bselect\b[^.]*\sfrom\s+\S+          # or one inside other text
    | \binsert\s+into\s
    | \bdelete\s+from\s
    | \bupdate\s+\S+\s+set\s
    | \bon\s+conflict\b
    | ^\s*with\s+\w+\s+as\s*(not\s+)?(materialized\s*)?\(
    | ^\s*begin\s*(;|\sread|\sisolation)
    | ^\s*(commit|rollback)\s*(;|$)
    | ^\s*set\s+(local\s+|session\s+)?[\w.]+\s*(=|\bto\b)
    | ^\s*(un)?listen\s+\S+$
    | ^\s*notify\s+\S+,
    | ^\s*(create|alter|drop|truncate|reindex|refresh)\s+
      (or\s+replace\s+)?(unique\s+|temp\s+)?(table|index|schema|function|view|type|role|database|trigger|extension)\b
    | ^\s*(vacuum|analyze|explain|copy|lock\s+table|grant|revoke)\s[\w(.]
    | \bhowdah\.[a-z_]+\s*\(               # a call of the engine
    | \bpg_(stat_\w+|backend_pid|advisory_\w+|notify|catalog\.)
    """,
    re.VERBOSE,
)


def sql_texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of every string literal that holds SQL; docstrings are left out."""
    tree = ast.parse(source)
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))  # a docstring
        elif isinstance(node, ast.JoinedStr):
            skipped.update(id(part) for part in node.values)
    for node in ast.walk(tree):
        text = _text_of(node)
        if text is not None and id(node) not in skipped and is_sql(text):
            yield node.lineno, text  # type: ignore[attr-defined]


def is_sql(text: str) -> bool:
    """Whether a text holds a statement; its keywords are all lower case or all upper case."""
    return _STATEMENT.search(re.sub(r"\b[A-Z]+\b", lambda word: word[0].lower(), text)) is not None


def _text_of(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else "{}"
            for part in node.values
        )
    return None


def statements(*, inside: tuple[str, ...] = (), outside: tuple[str, ...] = ()) -> list[str]:
    """List the SQL texts of the parts that are meant, each with its file and line."""
    texts: list[str] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE)
        if (not inside or name.parts[0] in inside) and name.parts[0] not in outside:
            texts += [f"{name}:{line}: {text}" for line, text in sql_texts(path.read_text())]
    return texts


def changing_functions() -> set[str]:
    """Read from the engine's files which functions may change something: the volatile ones."""
    declared = re.compile(
        r"^create or replace (?:function|procedure) howdah\.(\w+)(.*?)\bas \$|"
        r"^create or replace (?:function|procedure) howdah\.(\w+)(.*?)\bbegin atomic",
        re.MULTILINE | re.DOTALL,
    )
    volatile: set[str] = set()
    for file in engine_files.engine():
        for name, head, atomic_name, atomic_head in declared.findall(file.text):
            if not re.search(r"\b(stable|immutable)\b", head or atomic_head):
                volatile.add(name or atomic_name)
    return volatile


def test_no_other_part_holds_sql_text() -> None:
    assert statements(outside=HOLDS_SQL) == []


def test_observe_only_reads() -> None:
    changing = changing_functions()
    assert {"enqueue", "claim", "complete", "pause", "prune", "watch"} <= changing
    writes = re.compile(
        r"\b(insert\s+into|delete\s+from|update\s+\S+\s+set|truncate|for\s+(no\s+key\s+)?update)\b"
    )
    calls = re.compile(
        rf"^[^:]+:\d+: \s*(select|with)\b.*\bhowdah\.({'|'.join(changing)})\s*\(", re.S
    )
    assert [
        text
        for text in statements(inside=("observe",))
        if writes.search(text) or calls.search(text)
    ] == []


def test_observe_asks_for_no_connection_and_no_writing_transaction() -> None:
    around = re.compile(r"\.acquire\(|\.connect\(|writes\s*=\s*True")
    lines = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in sorted((PACKAGE / "observe").rglob("*.py"))
        for line in path.read_text().splitlines()
        if around.search(line)
    ]
    assert lines == []


@pytest.mark.parametrize(
    "source",
    [
        'rows = store.fetch("select 1")',
        'sql = f"select {columns} from howdah.jobs"',
        'sql = "delete from howdah.jobs where id = $1"',
        'sql = "select a " "from b"',
        'sql = "with due as (select 1) table due"',
        'sql = "begin; set local statement_timeout = 1"',
        'sql = "update howdah.jobs set priority = 1"',
        'sql = "listen howdah_wake"',
        'sql = "DELETE FROM jobs"',
    ],
)
def test_a_statement_is_recognized(source: str) -> None:
    assert list(sql_texts(source))


@pytest.mark.parametrize(
    "source",
    [
        '"""Select the jobs from howdah.jobs."""',
        'help = "Select jobs by type."',
        'word = "begin"',
        'title = "Update the page"',
    ],
)
def test_prose_is_not_taken_for_a_statement(source: str) -> None:
    assert not list(sql_texts(source))
