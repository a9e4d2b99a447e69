"""Charts: draw the curves of a full run for the documentation."""

from __future__ import annotations

from pathlib import Path

from bench.case_record import CaseRecord
from bench.install import ROOT
from bench.line_chart import line_chart

FOLDER = ROOT / "docs" / "growth"


def draw_charts(record: CaseRecord, folder: Path = FOLDER) -> None:
    """Write one chart per case."""
    folder.mkdir(parents=True, exist_ok=True)
    for curve in record.curves:
        (folder / f"{curve.case}.svg").write_text(line_chart([curve]))
