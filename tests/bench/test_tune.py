"""Every setting of a peer is tried in turns, and the report says whether the fastest is used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.peers.registry import PEERS
from bench.record import note, write_json
from bench.server import Postgres
from bench.tune import FILE, Setting, TuneRecord, report, run, text, verdict, with_earlier
from tests.bench.sample_record import rates, sample
from tests.support.databases import Databases

HOWDAH = PEERS["howdah"]


def setting(rate: float, *, used: bool = False, peer: str = "howdah", **options: Any) -> Setting:
    measurements = rates(peer, "drain_1", rate, rate * 0.9, rate * 1.1)
    return Setting(
        peer=peer, workload="drain_1", options=options, used=used, measurements=measurements
    )


def record(*settings: Setting, peers: tuple[str, ...] = ("howdah",)) -> TuneRecord:
    like = sample()
    return TuneRecord(
        command="the command",
        date=like.date,
        commit=like.commit,
        machine=like.machine,
        postgres=like.postgres,
        redis={},
        peers={name: note(PEERS[name], {"python": "3.11"}) for name in peers},
        settings=list(settings),
    )


def test_every_setting_is_measured_in_every_turn(databases: Databases) -> None:
    one_candidate = replace(HOWDAH, candidates={"drain_1": ({"concurrency": 20},)})
    made = run(one_candidate, 2, 100, Postgres(databases.server_dsn), "the command")
    assert [(setting.options, setting.used) for setting in made.settings] == [
        (HOWDAH.options, True),
        ({**HOWDAH.options, "concurrency": 20}, False),
    ]
    for setting in made.settings:
        assert [measurement.turn for measurement in setting.measurements] == [1, 2]
        assert [measurement.problem for measurement in setting.measurements] == [None, None]


def test_the_fastest_setting_is_first_and_the_used_one_is_marked() -> None:
    shown = report(record(setting(100, used=True, concurrency=10), setting(300, concurrency=50)))
    rows = [line for line in shown.splitlines() if line.startswith("| concurrency")]
    assert "concurrency 50" in rows[0]
    assert "300 (270-330)" in rows[0]
    assert "used" in rows[1]
    assert "33% of the rate of concurrency 50" in shown


@pytest.mark.parametrize(
    ("rate", "sentence"), [(301, "uses the fastest"), (295, "one as fast"), (280, "**")]
)
def test_a_setting_that_is_nearly_as_fast_is_good_enough(rate: float, sentence: str) -> None:
    (group,) = record(setting(rate, used=True), setting(300, concurrency=50)).groups()
    assert sentence in verdict(group)


def test_only_the_options_that_differ_are_shown() -> None:
    first, second = (
        setting(2, used=True, pool=10, size=1),
        setting(1, pool=10, size=2, run="thread"),
    )
    assert [text(one, [first, second]) for one in (first, second)] == [
        "size 1",
        "size 2, run thread",
    ]


def test_a_setting_that_fails_is_reported() -> None:
    broken, works = setting(300, concurrency=50), setting(100, used=True, concurrency=10)
    failed = msgspec.structs.replace(broken.measurements[0], problem="9 of 10 ran")
    made = record(msgspec.structs.replace(broken, measurements=[failed]), works)
    assert "- howdah, concurrency 50: 9 of 10 ran" in report(made)
    assert "The comparison uses the fastest." in report(made)


def test_a_run_adds_to_the_record_of_the_same_day(tmp_path: Path) -> None:
    first = record(setting(100, used=True), setting(1, peer="saq"), peers=("howdah", "saq"))
    write_json(first, tmp_path / FILE)
    again = with_earlier(record(setting(200, used=True)), tmp_path)
    assert [(kept.peer, kept.rate) for kept in again.settings] == [("saq", 1), ("howdah", 200)]
    assert again.peers.keys() == {"howdah", "saq"}
