"""Pages: the pictures of a full run, copied to where the documentation shows them."""

from __future__ import annotations

from pathlib import Path

from bench.findings import Account
from bench.install import ROOT
from bench.lines import picture

FOLDER = ROOT / "docs" / "growth"


def draw(account: Account, folder: Path = FOLDER) -> None:
    """Write one picture per axis."""
    folder.mkdir(parents=True, exist_ok=True)
    for curve in account.curves:
        (folder / f"{curve.case}.svg").write_text(picture([curve]))
