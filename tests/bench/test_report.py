"""The report shows the results, and names peers that could not be measured."""

from __future__ import annotations

from xml.etree import ElementTree

import msgspec

from bench.bar_chart import bar_chart
from bench.record import Measurement, Record
from bench.report import report
from tests.bench.sample_record import pickups, rates, sample


def whole() -> Record:
    return sample(
        *rates("howdah", "drain_1", 3000, 2000, 4000),
        *rates("graphile_worker", "drain_1", 1000, 1500, 500),
        *pickups("howdah", [0.5] * 98 + [2.0] * 2),
        problem="it needs Redis",
    )


def lines_with(text: str, word: str) -> list[str]:
    return [line for line in text.splitlines() if word in line]


def test_each_peer_is_shown_with_its_median_its_spread_and_howdahs_multiple() -> None:
    text = report(whole())
    assert "| 1,000 (500-1,500) · 3.0x |" in text
    assert "| 3,000 (2,000-4,000) |" in " ".join(text.split()).replace("  ", " ")


def test_a_peer_that_could_not_be_measured_is_reported() -> None:
    assert "- Celery: it needs Redis" in report(whole())
    assert "- Celery" not in report(sample())


def test_a_measurement_that_does_not_count_is_reported() -> None:
    failed = Measurement(
        peer="procrastinate", workload="drain_1", repetition=2, jobs=10, problem="9 of 10 ran"
    )
    assert "- Procrastinate, drain_1, repetition 2: 9 of 10 ran" in report(sample(failed))


def test_targets_are_marked_as_reached_or_not() -> None:
    text = report(whole())
    (graphile,) = lines_with(text, "drain, to Graphile Worker")
    assert [cell.strip() for cell in graphile.split("|")[2:5]] == [
        "at least 1.3x",
        "3.00x",
        "reached",
    ]
    (pgqueuer,) = lines_with(text, "drain, to PgQueuer")
    assert [cell.strip() for cell in pgqueuer.split("|")[2:5]] == [
        "at least 4x",
        "not measured",
        "-",
    ]


def test_a_trial_is_marked_as_a_trial() -> None:
    assert "A trial" in report(msgspec.structs.replace(whole(), trial=True))
    assert "A trial" not in report(whole())


def test_the_chart_has_a_bar_for_every_result_as_long_as_the_result() -> None:
    drawn = ElementTree.fromstring(bar_chart(whole()))
    bars = [shape for shape in drawn if shape.get("height") == "16"]
    widths = [float(bar.attrib["width"]) for bar in bars]
    assert len(widths) == 3  # two drains, one pickup
    assert round(widths[0] / widths[1], 2) == 3.0
