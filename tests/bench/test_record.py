"""A record is read back as it was written, and the newest real one is found."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bench.record import newest, read, write
from tests.bench.sample_record import pickups, rates, sample


def test_a_record_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    record = sample(*rates("howdah", "drain_1", 3000), *pickups("howdah", [1.5, 2.5]))
    write(record, tmp_path / "one")
    assert read(tmp_path / "one") == record


def test_the_newest_record_is_the_one_with_the_latest_date(tmp_path: Path) -> None:
    for name, date in (("b", "2025-01-01"), ("a", "2025-03-01"), ("c", "2025-02-01")):
        write(msgspec.structs.replace(sample(), date=date), tmp_path / name)
    assert newest(tmp_path) == tmp_path / "a"


def test_a_record_of_a_part_is_never_the_newest(tmp_path: Path) -> None:
    write(sample(), tmp_path / "whole")
    part = msgspec.structs.replace(sample(), date="2026-01-01", whole=False)
    write(part, tmp_path / "part")
    assert newest(tmp_path) == tmp_path / "whole"


def test_without_records_there_is_no_newest(tmp_path: Path) -> None:
    assert newest(tmp_path) is None
