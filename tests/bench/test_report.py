"""The report shows the results, and names peers that could not be measured."""

from __future__ import annotations

from xml.etree import ElementTree

import msgspec

from bench.bar_chart import bar_chart
from bench.record import Measurement, Record
from bench.report import report
from tests.bench.sample_record import costs, pickups, rates, sample


def whole() -> Record:
    return sample(
        *rates("howdah", "drain_1", 3000, 2000, 4000),
        *rates("graphile_worker", "drain_1", 1000, 1500, 500),
        *pickups("howdah", [0.5] * 98 + [2.0] * 2),
        problem="it needs Redis",
    )


def cells_of(text: str, title: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {title} ")]
    return [cell.strip() for cell in line.split("|")[2:-1]]


def test_each_peer_is_shown_with_its_median_its_spread_and_howdahs_multiple() -> None:
    text = report(whole())
    assert "| 1,000 (500-1,500) |" in " ".join(text.split())
    assert "| 3.00x |" in " ".join(text.split())
    assert "| 3,000 (2,000-4,000) |" in " ".join(text.split()).replace("  ", " ")


def test_a_peer_that_could_not_be_measured_is_reported() -> None:
    assert "- Celery: it needs Redis" in report(whole())
    assert "- Celery" not in report(sample())


def test_a_measurement_that_does_not_count_is_reported() -> None:
    failed = Measurement(
        peer="procrastinate", workload="drain_1", turn=2, jobs=10, problem="9 of 10 ran"
    )
    assert "- Procrastinate, drain_1, turn 2: 9 of 10 ran" in report(sample(failed))


def test_targets_are_marked_as_reached_or_not() -> None:
    text = report(
        sample(
            *rates("howdah", "drain_1", *[3000] * 8, 4000),
            *rates("graphile_worker", "drain_1", *[1000] * 9),
        )
    )
    assert cells_of(text, "drain, to Graphile Worker") == [
        "at least 1.5x",
        "3.00x",
        "3.00-3.00",
        "reached",
    ]
    assert cells_of(text, "drain, to PgQueuer") == ["at least 6x", "not measured", "-", "-"]


def test_a_target_measured_in_few_turns_is_not_decided() -> None:
    assert cells_of(report(whole()), "drain, to Graphile Worker")[1:] == [
        "3.00x",
        "-",
        "too few turns",
    ]


def test_the_cost_of_a_job_is_shown_where_it_was_measured() -> None:
    text = report(sample(*costs("howdah", "drain_1", (20.5, 10.25, 1026), (21.5, 10.25, 1026))))
    assert "| 21.0 + 10.2 |" in " ".join(text.split())
    assert "| 1,026 |" in " ".join(text.split())
    assert "CPU time per job in µs" not in report(whole())


def test_a_trial_is_marked_as_a_trial() -> None:
    assert "A trial" in report(msgspec.structs.replace(whole(), trial=True))
    assert "A trial" not in report(whole())


def test_the_chart_has_a_bar_for_every_result_as_long_as_the_result() -> None:
    drawn = ElementTree.fromstring(bar_chart(whole()))
    bars = [shape for shape in drawn if shape.get("height") == "16"]
    widths = [float(bar.attrib["width"]) for bar in bars]
    assert len(widths) == 3  # two drains, one pickup
    assert round(widths[0] / widths[1], 2) == 3.0
