"""Both sides of the quick benchmark run their own code and take turns; who cannot is named."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench.install import ROOT
from bench.peer import Plan
from bench.quick.judge import INCOMPLETE, verdict
from bench.quick.rounds import (
    MOST_ROUNDS,
    PLANS,
    ROUNDS,
    TRIAL_JOBS,
    CannotDo,
    Match,
    compare,
)
from bench.quick.sides import Side, frozen, same_code
from bench.server import Postgres
from tests.support.databases import Databases

SOURCE = ROOT / "src"
SMALL = {work: Plan(20) for work in PLANS}


@pytest.fixture
def postgres(databases: Databases) -> Postgres:
    return Postgres(databases.server_dsn)


def silent(_: str) -> None: ...


def match_on(postgres: Postgres, tree: Path, commit: Path) -> Match:
    return Match(Side("the working tree", tree), Side("commit 123", commit), postgres, silent)


def test_rates_and_times_are_compared_in_pairs(postgres: Postgres) -> None:
    works = {"drain_1": Plan(20), "pickup": Plan(3)}
    found = compare(match_on(postgres, SOURCE, SOURCE), works, seconds=0)
    assert [each.work for each in found] == list(works)
    for each in found:
        assert each.problem is None
        assert len(each.pairs) == 2  # without time, one round of A B B A and no more
        assert all(pair.tree > 0 and pair.commit > 0 for pair in each.pairs)


@pytest.mark.parametrize("broken", ["tree", "commit"])
def test_each_side_runs_its_own_code(postgres: Postgres, tmp_path: Path, broken: str) -> None:
    """One of them is given code that cannot enqueue many: that one, and no other, is named."""
    spoilt = frozen(SOURCE, tmp_path)
    enqueue = spoilt / "howdah" / "enqueue.py"
    enqueue.write_text(enqueue.read_text() + "\nenqueue_many = None\n")
    sides = {"tree": SOURCE, "commit": SOURCE, broken: spoilt}
    works = {work: SMALL[work] for work in ("enqueue_bulk", "enqueue_single")}
    bulk, single = compare(match_on(postgres, **sides), works, seconds=0)
    assert bulk.problem is not None
    title = "the working tree" if broken == "tree" else "commit 123"
    assert bulk.problem.startswith(f"{title} cannot do it. its driver ended with 1")
    assert "TypeError: 'NoneType' object is not callable" in bulk.problem
    assert len(single.pairs) == 2
    assert verdict([bulk]) == (INCOMPLETE, "Not compared: bulk enqueue.")


def test_each_side_has_the_schema_of_its_own_code(postgres: Postgres, tmp_path: Path) -> None:
    spoilt = frozen(SOURCE, tmp_path)
    wake = spoilt / "howdah" / "sql" / "25_notify" / "wake.sql"
    wake.write_text(wake.read_text() + "\nselect 1 / 0;\n")
    match = match_on(postgres, SOURCE, spoilt)
    assert match.take(match.tree, "enqueue_single", Plan(1)) > 0
    with pytest.raises(CannotDo, match=r"commit 123 cannot do it\. .*division by zero"):
        match.take(match.commit, "enqueue_single", Plan(1))


def test_a_commit_that_lacks_what_the_driver_needs_is_found_out_first(
    postgres: Postgres, tmp_path: Path
) -> None:
    (tmp_path / "howdah").mkdir()
    (tmp_path / "howdah" / "__init__.py").write_text("")
    found = compare(match_on(postgres, SOURCE, tmp_path), SMALL)
    assert verdict(found)[0] == INCOMPLETE
    for each in found:
        assert each.pairs == []
        assert each.problem is not None
        assert each.problem.startswith("commit 123 cannot do it.")
        assert "cannot import name 'Queue'" in each.problem


@dataclass(frozen=True)
class Sized(Match):
    """A match in which the numbers are given and nothing is measured; notes whose turn it was."""

    numbers: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    turns: list[str] = field(default_factory=list[str])

    def take(self, side: Side, work: str, plan: Plan) -> float:
        if plan.jobs == TRIAL_JOBS:
            return 1.0
        self.turns.append(side.title)
        numbers = self.numbers[side.title]
        return numbers.pop(0) if len(numbers) > 1 else numbers[0]


def sized(postgres: Postgres, tree: list[float], commit: list[float]) -> Sized:
    numbers = {"A": tree, "B": commit}
    return Sized(Side("A", SOURCE), Side("B", SOURCE), postgres, silent, numbers)


ONE_WORK = {"drain_1": Plan(1000)}


def test_the_sides_take_turns_and_each_begins_as_often(postgres: Postgres) -> None:
    match = sized(postgres, [100.0], [100.0])
    (found,) = compare(match, ONE_WORK)
    assert "".join(match.turns) == ("ABBABAAB" * ROUNDS)[: 4 * ROUNDS]
    assert len(found.pairs) == 2 * ROUNDS


def test_a_work_in_doubt_is_measured_more_often(postgres: Postgres) -> None:
    (found,) = compare(sized(postgres, [90.0], [100.0]), ONE_WORK)
    assert len(found.pairs) == 2 * MOST_ROUNDS


def test_doubt_ends_when_the_time_is_up(postgres: Postgres) -> None:
    (found,) = compare(sized(postgres, [90.0], [100.0]), ONE_WORK, seconds=0)
    assert len(found.pairs) == 2


def test_a_noisy_beginning_is_outvoted(postgres: Postgres) -> None:
    """Half of the first pairs say that the tree lost much; those that follow do not."""
    noisy = [60.0, 60.0, 60.0, 60.0, 100.0]
    (found,) = compare(sized(postgres, noisy, [100.0]), ONE_WORK)
    assert len(found.pairs) > 2 * ROUNDS
    assert not found.lost


def test_the_working_tree_is_frozen_as_it_is(tmp_path: Path) -> None:
    source = tmp_path / "src"
    (source / "howdah" / "__pycache__").mkdir(parents=True)
    (source / "howdah" / "one.py").write_text("1")
    (source / "howdah" / "__pycache__" / "one.pyc").write_text("compiled")
    copy = frozen(source, tmp_path / "ground")
    assert same_code(copy, source)
    (source / "howdah" / "one.py").write_text("2")
    assert (copy / "howdah" / "one.py").read_text() == "1"
    assert not same_code(copy, source)
    (source / "howdah" / "one.py").unlink()
    (source / "howdah" / "two.py").write_text("2")
    again = frozen(source, tmp_path / "ground")
    assert [path.name for path in (again / "howdah").iterdir()] == ["two.py"]
