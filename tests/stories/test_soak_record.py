"""The record of a soak: the median and the worst value of each fault."""

from __future__ import annotations

import msgspec

from tests.stories.soak.record import RECORDS, SoakRecord, newest, of_faults
from tests.stories.story import FaultOutcome


def outcome(name: str, under_way: int, resumed: float) -> FaultOutcome:
    return FaultOutcome(name, 1.0, under_way, resumed, caught_up=2 * resumed)


def test_each_kind_of_fault_has_its_median_and_its_worst() -> None:
    first, second = of_faults(
        [
            ("kill", outcome("b, killed", 10, 1.0)),
            ("cut", outcome("a, cut", 5, 0.5)),
            ("kill", outcome("b, killed", 30, 9.0)),
            ("kill", outcome("b, killed", 20, 2.0)),
        ]
    )
    assert (first.name, first.key, first.injected) == ("a, cut", "cut", 1)
    assert (second.injected, second.under_way, second.under_way_most) == (3, 20, 30)
    assert (second.resumed, second.resumed_worst) == (2.0, 9.0)
    assert (second.caught_up, second.caught_up_worst) == (4.0, 18.0)


def test_the_kept_record_has_every_fault_and_no_broken_promise() -> None:
    record, path = newest()
    assert path.is_relative_to(RECORDS)
    assert record == msgspec.json.decode(path.read_bytes(), type=SoakRecord)
    assert record.findings == []
    assert (record.lost, record.settled_twice) == (0, 0)
    assert min(fault.injected for fault in record.faults) >= 1
