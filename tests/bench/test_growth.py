"""Every axis of growth can be measured, up and down in turns, and drawn for the documentation."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.cases import Stage, add, start
from bench.growth.__main__ import CASES
from bench.growth.over import over
from bench.growth.pages import draw
from bench.server import Postgres
from tests.support.databases import Databases


@pytest.fixture
def stage(databases: Databases) -> Stage:
    return Stage(Postgres(databases.server_dsn), scale=0.001, rounds=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "lines", "steps"),
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
    name: str, lines: set[str], steps: list[int], stage: Stage
) -> None:
    (curve,) = CASES[name].run(stage).curves
    assert curve.case == name
    assert set(curve.lines) == lines
    for points in curve.lines.values():
        assert [x for x, _ in points] == steps
        assert all(rate > 0 for _, rate in points)


def test_steps_are_taken_up_and_down_in_turns(stage: Stage) -> None:
    taken: list[int] = []

    def measure(step: int) -> dict[str, float]:
        taken.append(step)
        return {"line": step * 2.0}

    three = Stage(stage.postgres)
    seen = over(three, [1, 2], measure, case="case", title="title", across="steps")
    assert taken == [1, 2, 2, 1, 1, 2]
    assert seen.curves[0].lines == {"line": [(step, step * 2) for step in taken]}


def test_every_axis_has_a_picture_of_its_own(stage: Stage, tmp_path: Path) -> None:
    account = start("growth", stage, "the command")
    add(account, CASES["history"], stage)
    draw(account, tmp_path / "growth")
    (drawn,) = (tmp_path / "growth").iterdir()
    assert drawn.name == "history.svg"
    assert "Jobs per second by history" in drawn.read_text()
