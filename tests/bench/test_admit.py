"""The benchmarks of keys and limits see every broken rule, and say what could not be measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.admit import fair
from bench.admit.__main__ import Options, main, measure
from bench.admit.bars import BARS, BURST, Always, InEveryTurn
from bench.admit.check import check
from bench.admit.exactness import (
    Run,
    by_key,
    findings,
    most_above,
    most_at_once,
    most_within,
    order_violations,
)
from bench.admit.guide import MISSING, PAGE
from bench.admit.guide import main as write_guide
from bench.admit.peers import CONTENDERS, HOWDAH, PEERS, install
from bench.admit.rate import look_costs, parts_of
from bench.admit.record import AdmitRecord, Measured, newest, read, write
from bench.admit.report import report
from bench.admit.rules import COMPARED, LIMITED, PLAIN, RATED_PEERS, RULES, Rule
from bench.admit.sizes import FULL, QUICK
from bench.admit.turns import JobsOfDrains, rotated, steps_of_howdah, steps_of_peers, variant_of
from bench.install import Environment
from bench.record import PeerNote
from bench.server import Postgres
from tests.support.databases import Databases

NOWHERE = Environment(Path(), ("python", "-m", "nothing"), {})
TINY = replace(
    QUICK,
    jobs=60,
    pickups=3,
    checked=20,
    snapshot_jobs=20,
    rate_seconds=1.0,
    waiting=200,
    claims=2,
)


@pytest.fixture
def postgres(databases: Databases) -> Postgres:
    return Postgres(databases.server_dsn)


def runs(*times: tuple[int, int, int]) -> list[Run]:
    """Make runs from the number of the job, when it began and when it ended."""
    return sorted(Run(began, ended, number) for number, began, ended in times)


def record(
    measured: list[Measured], *, trial: bool = False, date: str = "2025-01-02"
) -> AdmitRecord:
    return AdmitRecord(
        trial=trial,
        command="the command",
        date=f"{date} 03:04 UTC",
        commit="abcdef",
        machine={
            "cores": "2",
            "cpu": "a cpu",
            "memory": "4 GiB",
            "system": "Linux",
            "kernel": "6",
            "python": "3.11",
        },
        postgres={"version": "18.1"},
        sizes=QUICK.as_record(),
        peers={
            "howdah": PeerNote(title="howdah", store="postgres", settings="its own", keeps="all"),
            "pgqueuer": PeerNote(title="PgQueuer", store="postgres", settings="its own", keeps=""),
        },
        measured=measured,
        curves=[],
        skipped={},
    )


def measured(row: str, peer: str = "howdah", turn: int = 1, **values: float) -> Measured:
    return Measured(peer=peer, row=row, turn=turn, values=values)


# What the logs show.


def test_jobs_that_follow_each_other_do_not_run_at_once() -> None:
    assert most_at_once(runs((0, 10, 20), (1, 20, 30), (2, 30, 40))) == 1
    assert most_at_once(runs((0, 10, 21), (1, 20, 30), (2, 29, 40))) == 2
    assert most_at_once([]) == 0


def test_each_key_is_counted_by_itself() -> None:
    overlapping = runs((0, 0, 10), (1, 0, 10), (2, 5, 15), (3, 20, 30))
    assert [len(group) for group in by_key(overlapping, Rule("", "", "keys", keys=2))] == [2, 2]
    assert findings(overlapping, Rule("", "", "keys", keys=2))["most_at_once"] == 2
    assert findings(overlapping, Rule("", "", "keys", keys=4))["most_at_once"] == 1


def test_a_job_that_begins_before_an_earlier_one_violates_the_order() -> None:
    assert order_violations(runs((0, 0, 1), (1, 2, 3), (2, 4, 5))) == 0
    assert order_violations(runs((1, 0, 1), (0, 2, 3), (2, 4, 5))) == 1
    assert order_violations(runs((2, 0, 1), (1, 2, 3), (0, 4, 5))) == 2


def test_starts_are_held_against_the_rate_in_windows_of_every_length() -> None:
    assert most_above([0.0, 0.1, 0.2, 0.3], 10) == pytest.approx(1)
    assert most_above([0.0, 0.0, 0.0, 1.0], 10) == pytest.approx(3)
    late_burst = [nth / 10 for nth in range(100)] + [9.9] * 5
    assert most_above(late_burst, 10) == pytest.approx(6)
    assert most_within([0.0, 0.5, 0.9, 1.0, 1.4], 1.0) == 4


def test_the_mean_of_a_rate_is_that_of_each_part() -> None:
    starts = [nth / 100 for nth in range(700)]
    assert [part["mean"] for part in parts_of(starts, 6.0)] == pytest.approx([100] * 6)


def test_the_cost_of_a_look_is_compared_between_the_first_and_the_last_third() -> None:
    looks = [(0.0, 0.0), (10.0, 10.0), (20.0, 20.0), (30.0, 50.0)]
    assert look_costs(looks) == {"look_ms": 1.0, "late_look_ms": 3.0}


# Real drains.


@pytest.mark.slow
@pytest.mark.parametrize("rule", [*COMPARED, RATED_PEERS], ids=lambda rule: rule.name)
def test_howdah_is_exact_with_jobs_of_a_millisecond(rule: Rule, postgres: Postgres) -> None:
    variant = variant_of(HOWDAH, rule, install(HOWDAH.peer))
    values = check(variant, 200, postgres)
    assert values["ran_again"] == 0
    if rule is RATED_PEERS:
        assert values["most_in_a_second"] > 1
    else:
        assert 1 <= values["most_at_once"] <= rule.slots
    assert values.get("order_violations", 0) == 0


@pytest.mark.slow
def test_a_rule_that_is_not_kept_is_seen(postgres: Postgres) -> None:
    """Jobs without a rule, read as jobs of one ordered key."""
    variant = replace(
        variant_of(HOWDAH, RULES["ordered_1"], install(HOWDAH.peer)), options={"kind": "plain"}
    )
    values = check(variant, 200, postgres)
    assert values["most_at_once"] > 1


@pytest.mark.slow
@pytest.mark.timeout(900)  # a minute on a machine that does nothing else
def test_everything_is_measured_with_howdah(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def folder_of_test(date: str, name: str, *, trial: bool) -> Path:
        return tmp_path

    monkeypatch.setattr("bench.admit.__main__.record_folder", folder_of_test)
    parts = ["drains", "peers", "checks", "claim", "rate", "snapshot"]
    found, folder = measure(Options(parts, ["howdah"], TINY, "", "x", True), postgres, "a command")
    assert found.problems() == []
    assert read(folder) == found
    rows = {measured.row for measured in found.measured}
    assert {f"drain_{rule.name}" for rule in (PLAIN, *LIMITED, *COMPARED)} < rows
    assert {"pickup_plain", "pickup_keyed", "claim", "rate", "rate_held"} < rows
    assert {f"snapshot_{rule.name}" for rule in LIMITED} < rows
    assert (folder / "summary.md").exists()
    assert "<svg" in (folder / "plot.svg").read_text()


def test_a_code_without_fair_share_is_named_in_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def job(name: str) -> None:
        """Take no option `fair`."""

    monkeypatch.setattr("bench.admit.fair.Queue.job", job)
    reason = fair.lacking()
    assert reason is not None
    found = record([])
    found.skipped["fair"] = reason
    assert f"**fair was skipped**: {reason}" in report(found)


# Turns and peers.


def test_another_step_is_first_in_each_turn(postgres: Postgres) -> None:
    jobs = JobsOfDrains(NOWHERE, QUICK, postgres)
    steps = steps_of_howdah(NOWHERE, QUICK, jobs)
    first = [next(rotated(steps, turn)).row for turn in range(1, len(steps) + 1)]
    assert sorted(first) == sorted(step.row for step in steps)


def test_slow_peers_take_every_third_turn() -> None:
    environments = dict.fromkeys(PEERS, NOWHERE)

    def peers_in(turn: int) -> set[str]:
        return {step.variant.peer.name for step in steps_of_peers(environments, FULL, turn)}

    assert peers_in(1) == peers_in(4) == set(PEERS)
    assert "dbos" not in peers_in(2)
    assert "graphile_worker" in peers_in(2)
    assert peers_in(FULL.turns_of_peers + 1) == set()


def test_a_peer_has_each_compared_rule_or_says_what_it_has_instead() -> None:
    for contender in CONTENDERS:
        for rule in (*COMPARED, RATED_PEERS):
            assert (rule.name in contender.offers) != (rule.name in contender.lacks), contender
            assert contender.offers.get(rule.name) or contender.lacks[rule.name]


# The record and what is made of it.


def test_a_peer_without_a_rule_is_shown_as_such() -> None:
    row = next(
        line
        for line in report(record([])).splitlines()
        if line.startswith("| Graphile Worker") and "per process" in line
    )
    assert "has none" in row


def test_violations_and_rates_are_shown() -> None:
    found = record(
        [
            measured("drain_ordered_1", rate=3000.0, server_cpu=10.0, worker_cpu=5.0),
            measured("drain_ordered_1", "pgqueuer", rate=1000.0, server_cpu=20.0, worker_cpu=8.0),
            measured(
                "check_ordered_1", "pgqueuer", most_at_once=2, order_violations=17, rate=500.0
            ),
        ]
    )
    row = next(
        line
        for line in report(found).splitlines()
        if line.startswith("| PgQueuer") and "17" in line
    )
    cells = [cell.strip() for cell in row.split("|")]
    assert cells[2:8] == ["1,000", "3.00x", "20.0 + 8.0", "500", "2", "17"]


def test_a_measurement_with_a_problem_does_not_count_and_is_named() -> None:
    found = record([Measured(peer="pgqueuer", row="drain_limit_50", problem="a job was lost")])
    assert found.results() == {}
    assert "PgQueuer, drain_limit_50, turn 1: a job was lost" in report(found)


def test_a_bar_that_holds_always_is_judged_by_its_worst_value() -> None:
    bar = next(bar for bar in BARS if bar.title.endswith("any window") and "held" not in bar.title)
    assert isinstance(bar, Always)
    for above, reached in ((BURST, True), (BURST + 1, False)):
        results = record([measured("rate", turn=6, above=float(above))]).results()
        found = bar.measured(results)
        assert found is not None
        assert bar.reached(found) is reached


def test_howdah_is_ahead_of_a_peer_only_if_it_is_in_every_turn() -> None:
    bar = next(bar for bar in BARS if "PgQueuer" in bar.title)
    assert isinstance(bar, InEveryTurn)
    row = "drain_keys_1000"
    turns = [
        measured(row, peer, turn, rate=rate)
        for peer, rates in (("howdah", (30.0, 9.0)), ("pgqueuer", (10.0, 10.0)))
        for turn, rate in enumerate(rates, 1)
    ]
    for kept, reached in ((turns, False), ([turns[0], turns[2]], True)):
        found = bar.measured(record(kept).results())
        assert found is not None
        assert bar.reached(found) is reached


def test_every_bar_of_the_issue_is_measured() -> None:
    titles = "\n".join(bar.title for bar in BARS)
    for word in ("10,000 keys", "three at a time", "one ordered", "100 ordered", "limit of 50"):
        assert word in titles


@pytest.mark.parametrize("peer", [peer for peer in PEERS if peer != "howdah"])
def test_every_peer_has_a_bar(peer: str) -> None:
    assert any(PEERS[peer].peer.title in bar.title for bar in BARS)


def test_the_page_says_so_when_there_is_no_full_record(tmp_path: Path) -> None:
    page = tmp_path / "comparison.md"
    page.write_text("before\n\n<!-- admit:begin -->\n<!-- admit:end -->\n\nafter\n")
    records = tmp_path / "records"
    write(record([], trial=True), records / "2025-01-03-admit")
    assert newest(records) is None
    assert write_guide([], page, records) == 0
    assert MISSING in page.read_text()
    assert write_guide(["--check"], page, records) == 0


def test_the_page_is_made_from_the_newest_full_record(tmp_path: Path) -> None:
    page = tmp_path / "docs" / "guides" / "comparison.md"
    page.parent.mkdir(parents=True)
    page.write_text("before\n\n<!-- admit:begin -->\n<!-- admit:end -->\n\nafter\n")
    records = tmp_path / "bench" / "records"
    for date, rate in (("2025-01-02", 1234.0), ("2025-01-03", 5678.0)):
        write(record([measured("drain_plain", rate=rate)], date=date), records / f"{date}-admit")
    assert write_guide(["--check"], page, records) == 1
    assert write_guide([], page, records) == 0
    assert "5,678" in page.read_text()
    assert "1,234" not in page.read_text()
    assert "../../bench/records/2025-01-03-admit/summary.md" in page.read_text()


def test_the_page_of_this_tree_has_a_place_for_the_values() -> None:
    assert "<!-- admit:begin -->" in PAGE.read_text(encoding="utf-8")


def test_an_unknown_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--only", "drain"])
    assert "'drain' is unknown" in capsys.readouterr().err
