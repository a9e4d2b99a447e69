"""Every axis of growth can be measured, up and down in turns, and is drawn for the docs."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.cases import CaseContext, new_record, run_case
from bench.growth.__main__ import CASES
from bench.growth.charts import draw_charts
from bench.growth.sweep import sweep
from bench.server import Postgres
from tests.support.databases import Databases


@pytest.fixture
def context(databases: Databases) -> CaseContext:
    return CaseContext(Postgres(databases.server_dsn), scale=0.001, rounds=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "series", "steps"),
    [
        ("batch_size", {"enqueue_many", "worker"}, [1, 3, 10, 30, 100, 300, 1000, 3000]),
        (
            "concurrency",
            {"handlers that do nothing", "handlers that wait 10 ms"},
            [1, 3, 10, 30, 100, 300, 1000],
        ),
        ("backlog", {"worker"}, [10, 100, 1000, 5000]),
        ("history", {"worker"}, [0, 500, 2000, 5000]),
    ],
)
def test_every_axis_can_be_measured(
    name: str, series: set[str], steps: list[int], context: CaseContext
) -> None:
    (curve,) = CASES[name].run(context).curves
    assert curve.case == name
    assert set(curve.series) == series
    for points in curve.series.values():
        assert [x for x, _ in points] == steps
        assert all(rate > 0 for _, rate in points)


def test_steps_are_taken_up_and_down_in_turns(context: CaseContext) -> None:
    taken: list[int] = []

    def measure(step: int) -> dict[str, float]:
        taken.append(step)
        return {"line": step * 2.0}

    three = CaseContext(context.postgres)
    result = sweep(three, [1, 2], measure, case="case", title="title", x_label="steps")
    assert taken == [1, 2, 2, 1, 1, 2]
    assert result.curves[0].series == {"line": [(step, step * 2) for step in taken]}


def test_every_axis_has_its_own_chart(context: CaseContext, tmp_path: Path) -> None:
    record = new_record("growth", context, "the command")
    run_case(CASES["history"], context, record)
    draw_charts(record, tmp_path / "growth")
    (drawn,) = (tmp_path / "growth").iterdir()
    assert drawn.name == "history.svg"
    assert "Jobs per second by history" in drawn.read_text()
