"""The documents match the code: metrics, the Grafana dashboard and the log words."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import howdah
from howdah import Queue
from howdah.metrics.prometheus import prometheus
from howdah.states import Verb

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(howdah.__file__).parent
METRIC = re.compile(r"\bhowdah_[a-z_]+\b")
LEVELS = {"debug", "info", "warning", "error", "exception", "log", "ended"}


async def scraped(queue: Queue) -> dict[str, str]:
    text = await prometheus(queue.store)
    return dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))


async def test_the_guide_lists_exactly_the_metrics_of_the_code(queue: Queue) -> None:
    guide = (ROOT / "docs/guides/metrics.md").read_text()
    listed = dict(re.findall(r"^\| `(howdah_\w+)` \| (\w+) \|", guide, re.MULTILINE))
    assert listed == await scraped(queue)


async def test_the_dashboard_uses_only_existing_metrics_and_all_of_them(queue: Queue) -> None:
    dashboard: dict[str, Any] = json.loads((ROOT / "docs/grafana/howdah.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    expressions += [
        variable["definition"]
        for variable in dashboard["templating"]["list"]
        if "definition" in variable
    ]
    assert len(expressions) > 15
    kinds = await scraped(queue)
    series = {
        f"{name}{ending}"
        for name, kind in kinds.items()
        for ending in (("_bucket", "_sum", "_count") if kind == "histogram" else ("",))
    }
    used = {name for expression in expressions for name in METRIC.findall(expression)}
    assert used <= series
    assert {re.sub(r"_(bucket|sum|count)$", "", name) for name in used} == set(kinds)


def test_panels_of_the_dashboard_do_not_overlap() -> None:
    dashboard: dict[str, Any] = json.loads((ROOT / "docs/grafana/howdah.json").read_text())
    used_cells: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        position = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(position["x"], position["x"] + position["w"])
            for y in range(position["y"], position["y"] + position["h"])
        }
        assert not cells & used_cells, panel["title"]
        assert max(x for x, _ in cells) < 24
        used_cells |= cells
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))


def log_words() -> set[str]:
    """Return the first word of every message that the package logs."""
    words: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in LEVELS
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "_log"
            ):
                texts = [a.value for a in node.args if isinstance(a, ast.Constant)]
                messages = [text for text in texts if isinstance(text, str)]
                assert messages, f"{path}: a log message must be a string constant"
                words.add(messages[0].split()[0].rstrip(":"))
    return words


def test_exactly_the_log_words_of_the_code_are_documented() -> None:
    page = (ROOT / "docs/reference/logs.md").read_text()
    documented = set(re.findall(r"`([a-z]+\.[a-z_]+)`", page))
    words = log_words()
    assert "job.%s" in words
    endings = (Verb.COMPLETE, Verb.RETRY, Verb.FAIL, Verb.CANCEL, Verb.RELEASE, Verb.HAND_BACK)
    expected = (words - {"job.%s"}) | {f"job.{verb}" for verb in endings}
    assert documented == expected
