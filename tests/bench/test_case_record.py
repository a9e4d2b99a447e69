"""A run leaves a record with all its results, and a shortened run meets no target."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.case_record import (
    FILE,
    CaseRecord,
    CaseResult,
    Curve,
    Finding,
    as_table,
    full_records,
    read,
    report,
)
from bench.cases import Case, CaseContext, exit_code, new_record, parse, run_case, save
from bench.line_chart import Scale, axis_label, line_chart
from bench.record import newest
from bench.server import Postgres
from tests.support.databases import Databases

SLOW = Finding(case="slow", title="slow day", measured=0.5, sense="at least", bound=0.9)
FINE = Finding(case="fine", title="fine day", measured=19, sense="at most", bound=20, unit=" KiB")
RATES = Curve(
    case="slow",
    title="rates & more",
    x_label="jobs waiting",
    y_label="jobs/s",
    series={"good": [(10, 100), (10, 300), (10, 200), (1000, 400)], "bad": [(10, 50)]},
    logarithmic=True,
)


@pytest.fixture
def context(databases: Databases) -> CaseContext:
    return CaseContext(Postgres(databases.server_dsn))


def short(context: CaseContext) -> CaseContext:
    return CaseContext(context.postgres, scale=0.5)


def case(name: str, *findings: Finding) -> Case:
    return Case(name, f"the {name} one", lambda context: CaseResult(list(findings), [RATES]))


def fail(context: CaseContext) -> CaseResult:
    raise RuntimeError("a deliberate error")


def record_of(context: CaseContext, *findings: Finding) -> CaseRecord:
    record = new_record("adverse", context, "the command")
    run_case(case("slow", *findings), context, record)
    return record


def test_a_full_run_reports_targets_met_and_missed(context: CaseContext) -> None:
    record = record_of(context, SLOW, FINE)
    assert [record.verdict(finding) for finding in record.findings] == ["missed", "met"]
    assert exit_code(record) == 1
    assert exit_code(record_of(context, FINE)) == 0


def test_a_shortened_run_meets_no_target_and_misses_none(context: CaseContext) -> None:
    record = record_of(short(context), SLOW, FINE)
    assert [record.verdict(finding) for finding in record.findings] == ["shortened run"] * 2
    assert "A shortened run" in report(record)
    assert not re.search(r"\bmet\b(?! no)|missed", report(record).replace("meets no target", ""))


@pytest.mark.parametrize("option", ["--scale=0.99", "--minutes=5", "--rounds=2"])
def test_less_of_anything_is_a_shortened_run(option: str, context: CaseContext) -> None:
    cases = {"slow": case("slow")}
    assert not parse("adverse", cases, None, []).context(context.postgres).shortened
    assert parse("adverse", cases, None, [option]).context(context.postgres).shortened


@pytest.mark.parametrize(
    ("sense", "measured", "within"),
    [
        ("at least", 0.9, True),
        ("at least", 0.89, False),
        ("at most", 0.9, True),
        ("at most", 0.91, False),
        ("below", 0.9, False),
        ("below", 0.89, True),
    ],
)
def test_a_bound_is_kept_or_not(sense: str, measured: float, within: bool) -> None:
    finding = Finding(case="", title="", measured=measured, sense=sense, bound=0.9)  # pyright: ignore
    assert finding.within is within


def test_a_case_that_fails_is_reported_and_the_others_run(context: CaseContext) -> None:
    record = new_record("adverse", context, "the command")
    run_case(Case("broken", "title", fail), context, record)
    run_case(case("fine", FINE), context, record)
    assert record.problems == {"broken": "RuntimeError: a deliberate error"}
    assert record.findings == [FINE]
    assert "a deliberate error" in report(record)
    assert exit_code(record) == 1


def test_a_written_record_can_be_read_and_names_its_environment(
    context: CaseContext, tmp_path: Path
) -> None:
    record = record_of(context, SLOW)
    save(record, tmp_path / "2025-01-02-adverse")
    assert read(tmp_path / "2025-01-02-adverse") == record
    names = {path.name for path in (tmp_path / "2025-01-02-adverse").iterdir()}
    assert names == {FILE, "summary.md", "plot.svg"}
    assert record.command == "the command"
    assert record.machine["cores"]
    assert record.postgres["fsync"]
    assert "slow day" in (tmp_path / "2025-01-02-adverse" / "summary.md").read_text()


def test_only_full_runs_are_kept_for_the_pages_the_newest_first(
    context: CaseContext, tmp_path: Path
) -> None:
    save(record_of(context, SLOW), tmp_path / "2025-01-02-adverse")
    save(record_of(context, FINE), tmp_path / "2025-01-03-adverse")
    save(record_of(short(context), FINE), tmp_path / "2025-01-04-adverse")
    assert [folder.name for _, folder in full_records(tmp_path)] == [
        "2025-01-03-adverse",
        "2025-01-02-adverse",
    ]


def test_the_comparison_of_peers_ignores_it(context: CaseContext, tmp_path: Path) -> None:
    save(record_of(context, SLOW), tmp_path / "2025-01-02-adverse")
    assert newest(tmp_path) is None


def test_the_name_of_a_record_comes_from_its_options() -> None:
    cases = {name: case(name) for name in ("one", "two_three")}
    assert parse("adverse", cases, None, []).name == "adverse"
    assert parse("adverse", cases, None, ["--only", "two_three"]).name == "adverse-two-three"
    assert parse("adverse", cases, None, ["--server", "/bin"]).name == "adverse-other-postgres"
    assert parse("adverse", cases, None, ["--record", "mine"]).name == "mine"
    with pytest.raises(SystemExit):
        parse("adverse", cases, None, ["--only", "four"])


def test_the_sides_take_turns_each_first_in_every_other_round(context: CaseContext) -> None:
    assert list(context.turns()) == [
        (1, False), (1, True), (2, True), (2, False), (3, False), (3, True),
    ]  # fmt: skip


def test_nothing_is_held_longer_than_asked_for(context: CaseContext) -> None:
    assert context.seconds(10) == 600
    assert CaseContext(context.postgres, max_minutes=0.5).seconds(10) == 30
    assert CaseContext(context.postgres, max_minutes=20).seconds(10) == 600


def test_a_table_shows_the_medians() -> None:
    lines = as_table(RATES, ["good", "bad"]).splitlines()
    assert [cell.strip() for cell in lines[2].strip("|").split("|")] == ["10", "200", "50"]
    assert [cell.strip() for cell in lines[3].strip("|").split("|")] == ["1,000", "400", "-"]


def test_a_picture_draws_every_line_within_its_frame() -> None:
    root = ElementTree.fromstring(line_chart([RATES, RATES]))
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    lines = [shape for shape in root.iter() if shape.tag.endswith("polyline")]
    assert len(lines) == 2 * (5 + 2 + 2), "grid, legend and curves of both panels"
    for line in lines:
        for point in line.get("points", "").split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= width
            assert 0 <= y <= height
    assert "rates &amp; more" in line_chart([RATES])


def test_equal_factors_are_equal_steps_on_a_logarithmic_axis() -> None:
    scale = Scale(RATES, 0)
    assert scale.x(100) - scale.x(10) == pytest.approx(scale.x(1000) - scale.x(100))  # pyright: ignore
    assert scale.highest == 400
    assert scale.y(0) > scale.y(400)


def test_an_axis_of_many_points_has_few_round_numbers() -> None:
    seconds = [(second - 60.0, 1.0) for second in range(661)]
    drawn = line_chart(
        [Curve(case="", title="", x_label="s", y_label="ms", series={"one": seconds})]
    )
    middle = re.findall(r'text-anchor="middle">([^<]+)<', drawn)
    assert middle == ["0", "100", "200", "300", "400", "500", "600"]


def test_numbers_of_an_axis_are_short() -> None:
    assert [axis_label(x) for x in (0, 0.25, 10, 1500, 20_000, 1_000_000, 2_500_000)] == [
        "0", "0.25", "10", "1.5k", "20k", "1M", "2.5M",
    ]  # fmt: skip
