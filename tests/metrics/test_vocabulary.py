"""What is documented is what there is: metrics, the Grafana dashboard, and the words of the log."""

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


async def test_the_guide_lists_every_metric_and_no_other(queue: Queue) -> None:
    guide = (ROOT / "docs/guides/metrics.md").read_text()
    listed = dict(re.findall(r"^\| `(howdah_\w+)` \| (\w+) \|", guide, re.MULTILINE))
    assert listed == await scraped(queue)


async def test_the_dashboard_asks_for_metrics_that_there_are(queue: Queue) -> None:
    dashboard: dict[str, Any] = json.loads((ROOT / "docs/grafana/howdah.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [one["definition"] for one in dashboard["templating"]["list"] if "definition" in one]
    assert len(asked) > 15
    kinds = await scraped(queue)
    series = {
        f"{name}{ending}"
        for name, kind in kinds.items()
        for ending in (("_bucket", "_sum", "_count") if kind == "histogram" else ("",))
    }
    used = {name for expression in asked for name in METRIC.findall(expression)}
    assert used <= series
    assert {re.sub(r"_(bucket|sum|count)$", "", name) for name in used} == set(kinds)


def test_panels_of_the_dashboard_do_not_overlap() -> None:
    dashboard: dict[str, Any] = json.loads((ROOT / "docs/grafana/howdah.json").read_text())
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))


def logged() -> set[str]:
    """The first words of all messages that the package logs."""
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
                said = [text for text in texts if isinstance(text, str)]
                assert said, f"{path}: a message that is no plain text"
                words.add(said[0].split()[0].rstrip(":"))
    return words


def test_every_word_of_the_log_is_documented_and_no_other() -> None:
    page = (ROOT / "docs/reference/logs.md").read_text()
    documented = set(re.findall(r"`([a-z]+\.[a-z_]+)`", page))
    words = logged()
    assert "job.%s" in words
    endings = (Verb.COMPLETE, Verb.RETRY, Verb.FAIL, Verb.CANCEL, Verb.RELEASE, Verb.HAND_BACK)
    expected = (words - {"job.%s"}) | {f"job.{verb}" for verb in endings}
    assert documented == expected
