"""The README's comparison comes from the newest record, and a check notices when it does not."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench.record import write
from bench.table import BEGIN, END, main
from tests.bench.sample_record import costs, pickups, rates, sample

AROUND = f"# Title\n\nbefore\n\n{BEGIN}\nold words\n{END}\n\nafter\n"


@pytest.fixture
def records(tmp_path: Path) -> Path:
    record = sample(
        *rates("howdah", "drain_1", 91234),
        *rates("graphile_worker", "drain_1", 60111),
        *pickups("howdah", [0.8, 1.9]),
    )
    write(record, tmp_path / "records" / "2025-01-02-peers")
    return tmp_path / "records"


@pytest.fixture
def readme(tmp_path: Path) -> Path:
    path = tmp_path / "README.md"
    path.write_text(AROUND)
    return path


def test_the_table_is_written_between_the_markers(records: Path, readme: Path) -> None:
    assert main([], readme, records) == 0
    text = readme.read_text()
    assert "old words" not in text
    assert text.startswith("# Title\n\nbefore\n\n" + BEGIN)
    assert text.endswith(END + "\n\nafter\n")
    assert "91,234" in text
    assert "60,111" in text
    assert "0.8 / 1.9" in text
    assert "(bench/records/2025-01-02-peers/summary.md)" in text


def test_the_cost_of_a_job_and_the_multiple_are_shown_where_they_were_measured(
    tmp_path: Path, readme: Path
) -> None:
    record = sample(
        *costs("howdah", "drain_1", *[(20.0, 10.0, 900.0)] * 9, rate=3000),
        *costs("graphile_worker", "drain_1", *[(25.0, 12.0, 600.0)] * 9, rate=2000),
    )
    write(record, tmp_path / "records" / "2025-01-02-peers")
    main([], readme, tmp_path / "records")
    text = readme.read_text()
    assert "| 20.0 + 10.0 |" in " ".join(text.split())
    assert "1.50x (1.50-1.50) Graphile Worker's" in text


def test_drains_of_an_older_record_are_said_to_begin_after_the_load(
    tmp_path: Path, readme: Path
) -> None:
    for quiet, noted in ((True, False), (False, True)):
        record = msgspec.structs.replace(sample(*rates("howdah", "drain_1", 9)), quiet=quiet)
        write(record, tmp_path / "records" / "2025-01-02-peers")
        main([], readme, tmp_path / "records")
        assert ("straight after the load" in readme.read_text()) is noted


def test_writing_twice_changes_nothing(records: Path, readme: Path) -> None:
    main([], readme, records)
    once = readme.read_text()
    main([], readme, records)
    assert readme.read_text() == once


def test_the_check_fails_until_the_table_is_written(
    records: Path, readme: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--check"], readme, records) == 1
    assert "out of date" in capsys.readouterr().err
    assert readme.read_text() == AROUND
    main([], readme, records)
    assert main(["--check"], readme, records) == 0


def test_a_readme_without_markers_is_left_alone(records: Path, readme: Path) -> None:
    readme.write_text("# Title\n")
    assert main(["--check"], readme, records) == 0
    assert main([], readme, records) == 0
    assert readme.read_text() == "# Title\n"


def test_without_a_record_there_is_nothing_to_check(tmp_path: Path, readme: Path) -> None:
    assert main(["--check"], readme, tmp_path) == 0
