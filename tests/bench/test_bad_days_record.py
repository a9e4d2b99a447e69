"""A run leaves a record with all that was found, and a shortened one meets no target."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.cases import Case, Stage, add, exit_code, parse, publish, start
from bench.findings import FILE, Account, Curve, Finding, Seen, as_table, kept, read, report
from bench.lines import Scale, picture, said
from bench.record import newest
from bench.server import Postgres
from tests.support.databases import Databases

SLOW = Finding(case="slow", title="slow day", measured=0.5, sense="at least", bound=0.9)
FINE = Finding(case="fine", title="fine day", measured=19, sense="at most", bound=20, unit=" KiB")
RATES = Curve(
    case="slow",
    title="rates & more",
    across="jobs waiting",
    upward="jobs/s",
    lines={"good": [(10, 100), (10, 300), (10, 200), (1000, 400)], "bad": [(10, 50)]},
    logarithmic=True,
)


@pytest.fixture
def stage(databases: Databases) -> Stage:
    return Stage(Postgres(databases.server_dsn))


def short(stage: Stage) -> Stage:
    return Stage(stage.postgres, scale=0.5)


def case(name: str, *findings: Finding) -> Case:
    return Case(name, f"the {name} one", lambda stage: Seen(list(findings), [RATES]))


def broken(stage: Stage) -> Seen:
    raise RuntimeError("the roof fell in")


def account(stage: Stage, *findings: Finding) -> Account:
    made = start("bad-days", stage, "the command")
    add(made, case("slow", *findings), stage)
    return made


def test_a_full_run_says_what_was_met_and_what_was_missed(stage: Stage) -> None:
    made = account(stage, SLOW, FINE)
    assert [made.verdict(one) for one in made.findings] == ["missed", "met"]
    assert exit_code(made) == 1
    assert exit_code(account(stage, FINE)) == 0


def test_a_shortened_run_meets_no_target_and_misses_none(stage: Stage) -> None:
    made = account(short(stage), SLOW, FINE)
    assert [made.verdict(one) for one in made.findings] == ["shortened run"] * 2
    assert "A shortened run" in report(made)
    assert not re.search(r"\bmet\b(?! no)|missed", report(made).replace("meets no target", ""))


@pytest.mark.parametrize("option", ["--scale=0.99", "--minutes=5", "--rounds=2"])
def test_less_of_anything_is_a_shortened_run(option: str, stage: Stage) -> None:
    cases = {"slow": case("slow")}
    assert not parse("bad-days", cases, None, []).stage(stage.postgres).shortened
    assert parse("bad-days", cases, None, [option]).stage(stage.postgres).shortened


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


def test_a_case_that_breaks_is_reported_and_the_others_take_their_turn(stage: Stage) -> None:
    made = start("bad-days", stage, "the command")
    add(made, Case("roof", "title", broken), stage)
    add(made, case("fine", FINE), stage)
    assert made.problems == {"roof": "RuntimeError: the roof fell in"}
    assert made.findings == [FINE]
    assert "the roof fell in" in report(made)
    assert exit_code(made) == 1


def test_what_is_written_can_be_read_and_has_what_it_was_measured_with(
    stage: Stage, tmp_path: Path
) -> None:
    made = account(stage, SLOW)
    publish(made, tmp_path / "2025-01-02-bad-days")
    assert read(tmp_path / "2025-01-02-bad-days") == made
    names = {path.name for path in (tmp_path / "2025-01-02-bad-days").iterdir()}
    assert names == {FILE, "summary.md", "plot.svg"}
    assert made.command == "the command"
    assert made.machine["cores"]
    assert made.postgres["fsync"]
    assert "slow day" in (tmp_path / "2025-01-02-bad-days" / "summary.md").read_text()


def test_only_full_runs_are_kept_for_the_pages_the_newest_first(
    stage: Stage, tmp_path: Path
) -> None:
    publish(account(stage, SLOW), tmp_path / "2025-01-02-bad-days")
    publish(account(stage, FINE), tmp_path / "2025-01-03-bad-days")
    publish(account(short(stage), FINE), tmp_path / "2025-01-04-bad-days")
    assert [folder.name for _, folder in kept(tmp_path)] == [
        "2025-01-03-bad-days",
        "2025-01-02-bad-days",
    ]


def test_the_comparison_of_peers_takes_no_notice_of_it(stage: Stage, tmp_path: Path) -> None:
    publish(account(stage, SLOW), tmp_path / "2025-01-02-bad-days")
    assert newest(tmp_path) is None


def test_a_name_says_what_was_run_and_where() -> None:
    cases = {name: case(name) for name in ("one", "two_three")}
    assert parse("bad-days", cases, None, []).name == "bad-days"
    assert parse("bad-days", cases, None, ["--only", "two_three"]).name == "bad-days-two-three"
    assert parse("bad-days", cases, None, ["--server", "/bin"]).name == "bad-days-other-postgres"
    assert parse("bad-days", cases, None, ["--record", "mine"]).name == "mine"
    with pytest.raises(SystemExit):
        parse("bad-days", cases, None, ["--only", "four"])


def test_the_sides_take_turns_each_first_in_every_other_round(stage: Stage) -> None:
    assert list(stage.turns()) == [
        (1, False), (1, True), (2, True), (2, False), (3, False), (3, True),
    ]  # fmt: skip


def test_nothing_is_held_longer_than_asked_for(stage: Stage) -> None:
    assert stage.seconds(10) == 600
    assert Stage(stage.postgres, most_minutes=0.5).seconds(10) == 30
    assert Stage(stage.postgres, most_minutes=20).seconds(10) == 600


def test_a_table_shows_the_medians() -> None:
    lines = as_table(RATES, ["good", "bad"]).splitlines()
    assert [cell.strip() for cell in lines[2].strip("|").split("|")] == ["10", "200", "50"]
    assert [cell.strip() for cell in lines[3].strip("|").split("|")] == ["1,000", "400", "-"]


def test_a_picture_draws_every_line_within_its_frame() -> None:
    root = ElementTree.fromstring(picture([RATES, RATES]))
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    lines = [one for one in root.iter() if one.tag.endswith("polyline")]
    assert len(lines) == 2 * (5 + 2 + 2), "grid, legend and curves of both panels"
    for line in lines:
        for point in line.get("points", "").split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= width
            assert 0 <= y <= height
    assert "rates &amp; more" in picture([RATES])


def test_equal_factors_are_equal_steps_on_a_logarithmic_axis() -> None:
    scale = Scale(RATES, 0)
    assert scale.x(100) - scale.x(10) == pytest.approx(scale.x(1000) - scale.x(100))  # pyright: ignore
    assert scale.highest == 400
    assert scale.y(0) > scale.y(400)


def test_an_axis_of_many_points_has_few_round_numbers() -> None:
    seconds = [(second - 60.0, 1.0) for second in range(661)]
    drawn = picture([Curve(case="", title="", across="s", upward="ms", lines={"one": seconds})])
    middle = re.findall(r'text-anchor="middle">([^<]+)<', drawn)
    assert middle == ["0", "100", "200", "300", "400", "500", "600"]


def test_numbers_of_an_axis_are_short() -> None:
    assert [said(x) for x in (0, 0.25, 10, 1500, 20_000, 1_000_000, 2_500_000)] == [
        "0", "0.25", "10", "1.5k", "20k", "1M", "2.5M",
    ]  # fmt: skip
