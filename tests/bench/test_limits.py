"""The values on the page about limits come from records, and a check notices if they do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.case_record import CaseRecord, Curve, Finding, write
from bench.limits import BLOCKS, PAGE, main

EMPTY = "\n".join(f"## {name}\n\n<!-- {name}:begin -->\n<!-- {name}:end -->\n" for name in BLOCKS)


def keep(
    records: Path, folder: str, suite: str, *, shortened: bool = False, rate: float = 4000.0
) -> None:
    record = CaseRecord(
        suite=suite,
        shortened=shortened,
        command="the command",
        date=f"{folder[:10]} 03:04 UTC",
        commit="abcdef",
        machine={"cores": "2", "cpu": "a cpu", "python": "3.11"},
        postgres={"version": "18.1"},
        findings=[
            Finding(
                case="mixed", title="mixed", measured=rate / 10_000, sense="at least", bound=0.6
            )
        ],
        curves=[
            Curve(
                case="history",
                title="Jobs per second by history",
                x_label="finished jobs kept",
                y_label="jobs/s",
                series={"worker": [(0, rate), (5000, rate / 2)]},
            )
        ],
    )
    write(record, records / folder)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "docs" / "guides" / "limits.md"
    path.parent.mkdir(parents=True)
    path.write_text(EMPTY)
    return path


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "bench" / "records"
    keep(path, "2025-01-02-growth", "growth", rate=8000)
    keep(path, "2025-01-03-growth", "growth", rate=9000)
    keep(path, "2025-01-04-growth", "growth", rate=10, shortened=True)
    keep(path, "2025-01-02-bad-days", "bad-days", rate=7000)
    return path


def test_a_case_that_was_never_measured_names_its_command(page: Path, tmp_path: Path) -> None:
    assert main([], page, tmp_path) == 0
    text = page.read_text()
    assert text.count("Not measured in full yet") == len(BLOCKS)
    assert "run `make bench-growth`" in text
    assert "run `make bench-memory`" in text


def test_the_newest_full_run_is_shown_with_its_chart(page: Path, records: Path) -> None:
    main([], page, records)
    text = page.read_text()
    assert "9,000" in text
    assert "4,500" in text
    assert "8,000" not in text
    assert "![Jobs per second by history](../growth/history.svg)" in text
    assert "../../bench/records/2025-01-03-growth/summary.md" in text
    assert "2025-01-04" not in text


def test_adverse_cases_are_shown_with_their_verdict(page: Path, records: Path) -> None:
    main([], page, records)
    text = page.read_text()
    assert "0.70x" in text
    assert "| met |" in text.replace("  ", "")
    keep(records, "2025-01-05-adverse", "adverse", rate=5000)
    main([], page, records)
    assert "missed" in page.read_text()
    assert "0.70x" not in page.read_text()


def test_records_from_before_the_suite_was_renamed_are_shown(page: Path, records: Path) -> None:
    main([], page, records)
    assert "2025-01-02-bad-days" in page.read_text()
    keep(records, "2025-01-05-adverse", "adverse", rate=5000)
    main([], page, records)
    assert "2025-01-02-bad-days" not in page.read_text()


def test_writing_twice_changes_nothing(page: Path, records: Path) -> None:
    main([], page, records)
    once = page.read_text()
    main([], page, records)
    assert page.read_text() == once


def test_the_check_fails_until_the_page_is_written(
    page: Path, records: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--check"], page, records) == 1
    assert "out of date" in capsys.readouterr().err
    assert page.read_text() == EMPTY
    main([], page, records)
    assert main(["--check"], page, records) == 0


def test_the_page_is_up_to_date_and_has_every_block() -> None:
    assert main(["--check"]) == 0
    text = PAGE.read_text()
    assert all(text.count(f"<!-- {name}:begin -->") == 1 for name in BLOCKS)
