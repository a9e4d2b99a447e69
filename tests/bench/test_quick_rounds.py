"""Both variants run their own code and take turns. One that fails is named."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench.install import ROOT
from bench.peer import Plan
from bench.quick.rounds import (
    MOST_ROUNDS,
    PLANS,
    ROUNDS,
    TRIAL_JOBS,
    MeasurementFailed,
    PairRunner,
    compare,
)
from bench.quick.variants import Variant, copy_source, same_code
from bench.quick.verdict import INCOMPLETE, verdict
from bench.server import Postgres
from tests.support.databases import Databases

SOURCE = ROOT / "src"
SMALL = {workload: Plan(20) for workload in PLANS}


@pytest.fixture
def postgres(databases: Databases) -> Postgres:
    return Postgres(databases.server_dsn)


def silent(_: str) -> None: ...


def runner_on(postgres: Postgres, tree: Path, commit: Path) -> PairRunner:
    return PairRunner(
        Variant("the working tree", tree), Variant("commit 123", commit), postgres, silent
    )


def test_rates_and_times_are_compared_in_pairs(postgres: Postgres) -> None:
    workloads = {"drain_1": Plan(20), "pickup": Plan(3)}
    comparisons = compare(runner_on(postgres, SOURCE, SOURCE), workloads, seconds=0)
    assert [comparison.workload for comparison in comparisons] == list(workloads)
    for comparison in comparisons:
        assert comparison.problem is None
        assert len(comparison.pairs) == 2  # without time, one round of A B B A and no more
        assert all(pair.tree > 0 and pair.commit > 0 for pair in comparison.pairs)


@pytest.mark.parametrize("broken", ["tree", "commit"])
def test_each_variant_runs_its_own_code(postgres: Postgres, tmp_path: Path, broken: str) -> None:
    """One variant has code that cannot enqueue many. Only this one is named."""
    broken_source = copy_source(SOURCE, tmp_path)
    enqueue = broken_source / "howdah" / "enqueue.py"
    enqueue.write_text(enqueue.read_text() + "\nenqueue_many = None\n")
    sources = {"tree": SOURCE, "commit": SOURCE, broken: broken_source}
    workloads = {workload: SMALL[workload] for workload in ("enqueue_bulk", "enqueue_single")}
    bulk, single = compare(runner_on(postgres, **sources), workloads, seconds=0)
    assert bulk.problem is not None
    title = "the working tree" if broken == "tree" else "commit 123"
    assert bulk.problem.startswith(f"{title} fails: its driver ended with exit code 1")
    assert "TypeError: 'NoneType' object is not callable" in bulk.problem
    assert len(single.pairs) == 2
    assert verdict([bulk]) == (INCOMPLETE, "Not compared: bulk enqueue.")


def test_each_variant_has_the_schema_of_its_own_code(postgres: Postgres, tmp_path: Path) -> None:
    broken_source = copy_source(SOURCE, tmp_path)
    wake = broken_source / "howdah" / "sql" / "25_notify" / "wake.sql"
    wake.write_text(wake.read_text() + "\nselect 1 / 0;\n")
    runner = runner_on(postgres, SOURCE, broken_source)
    assert runner.measure(runner.tree, "enqueue_single", Plan(1)) > 0
    with pytest.raises(MeasurementFailed, match=r"commit 123 fails: .*division by zero"):
        runner.measure(runner.commit, "enqueue_single", Plan(1))


def test_a_commit_that_the_driver_cannot_use_is_refused_first(
    postgres: Postgres, tmp_path: Path
) -> None:
    (tmp_path / "howdah").mkdir()
    (tmp_path / "howdah" / "__init__.py").write_text("")
    comparisons = compare(runner_on(postgres, SOURCE, tmp_path), SMALL)
    assert verdict(comparisons)[0] == INCOMPLETE
    for comparison in comparisons:
        assert comparison.pairs == []
        assert comparison.problem is not None
        assert comparison.problem.startswith("commit 123 fails:")
        assert "cannot import name 'Queue'" in comparison.problem


@dataclass(frozen=True)
class ScriptedRunner(PairRunner):
    """Returns given numbers instead of measuring, and records the turns."""

    numbers: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    turns: list[str] = field(default_factory=list[str])

    def measure(self, variant: Variant, workload: str, plan: Plan) -> float:
        if plan.jobs == TRIAL_JOBS:
            return 1.0
        self.turns.append(variant.title)
        numbers = self.numbers[variant.title]
        return numbers.pop(0) if len(numbers) > 1 else numbers[0]


def scripted(postgres: Postgres, tree: list[float], commit: list[float]) -> ScriptedRunner:
    numbers = {"A": tree, "B": commit}
    return ScriptedRunner(Variant("A", SOURCE), Variant("B", SOURCE), postgres, silent, numbers)


ONE_WORKLOAD = {"drain_1": Plan(1000)}


def test_the_variants_take_turns_and_each_begins_as_often(postgres: Postgres) -> None:
    runner = scripted(postgres, [100.0], [100.0])
    (comparison,) = compare(runner, ONE_WORKLOAD)
    assert "".join(runner.turns) == ("ABBABAAB" * ROUNDS)[: 4 * ROUNDS]
    assert len(comparison.pairs) == 2 * ROUNDS


def test_a_workload_in_doubt_is_measured_more_often(postgres: Postgres) -> None:
    (comparison,) = compare(scripted(postgres, [90.0], [100.0]), ONE_WORKLOAD)
    assert len(comparison.pairs) == 2 * MOST_ROUNDS


def test_no_round_begins_after_the_time_limit(postgres: Postgres) -> None:
    (comparison,) = compare(scripted(postgres, [90.0], [100.0]), ONE_WORKLOAD, seconds=0)
    assert len(comparison.pairs) == 2


def test_noise_at_the_beginning_does_not_decide(postgres: Postgres) -> None:
    """Half of the first pairs show a large loss. The pairs after them do not."""
    noisy = [60.0, 60.0, 60.0, 60.0, 100.0]
    (comparison,) = compare(scripted(postgres, noisy, [100.0]), ONE_WORKLOAD)
    assert len(comparison.pairs) > 2 * ROUNDS
    assert not comparison.lost


def test_the_working_tree_is_copied_as_it_is(tmp_path: Path) -> None:
    source = tmp_path / "src"
    (source / "howdah" / "__pycache__").mkdir(parents=True)
    (source / "howdah" / "one.py").write_text("1")
    (source / "howdah" / "__pycache__" / "one.pyc").write_text("compiled")
    copy = copy_source(source, tmp_path / "copies")
    assert same_code(copy, source)
    (source / "howdah" / "one.py").write_text("2")
    assert (copy / "howdah" / "one.py").read_text() == "1"
    assert not same_code(copy, source)
    (source / "howdah" / "one.py").unlink()
    (source / "howdah" / "two.py").write_text("2")
    again = copy_source(source, tmp_path / "copies")
    assert [path.name for path in (again / "howdah").iterdir()] == ["two.py"]
