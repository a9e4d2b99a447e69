"""Charts: one panel for each stress and value, with a line for each peer."""

from __future__ import annotations

from collections.abc import Callable, Generator

from bench.case_record import Curve, Point
from bench.line_chart import line_chart
from bench.record import in_order
from bench.stress.record import OverTime, StressRecord
from bench.stress.stresses import STRESSES

Read = Callable[[OverTime], list[Point]]

PANELS: list[tuple[str, str, Read]] = [
    ("jobs that began", "jobs/s", lambda values: values.rate),
    ("pickup p50", "ms", lambda values: values.p50_ms),
    ("pickup p99", "ms", lambda values: values.p99_ms),
    ("dead rows of the job tables", "rows", lambda values: values.dead_rows),
    ("job tables without indexes", "MB", lambda values: values.table_mb),
]


def chart(record: StressRecord) -> str:
    return line_chart(list(curves(record)))


def curves(record: StressRecord) -> Generator[Curve]:
    for stress in STRESSES.values():
        for title, unit, read in PANELS:
            series = {
                record.peers[peer].title: read(run.over_time)
                for peer in in_order(record.peers)
                if (run := record.run(peer, stress.name)) and run.over_time
            }
            if any(series.values()):
                yield Curve(
                    case=stress.name,
                    title=f"{stress.title}: {title}",
                    x_label="seconds since the stress began, which lasts"
                    f" {record.seconds['stress']:g} s",
                    y_label=unit,
                    series=series,
                )
