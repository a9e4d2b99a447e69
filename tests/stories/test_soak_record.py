"""The record of a soak: the median and the worst value of each fault."""

from __future__ import annotations

import msgspec

from tests.stories.soak.record import RECORDS, AdmissionRecord, SoakRecord, newest, of_faults
from tests.stories.story import FaultOutcome
from tools.write_reliability import table


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


def test_the_page_names_the_promises_of_keys_and_limits_where_the_record_shows_them() -> None:
    record, path = newest()
    older = msgspec.structs.replace(record, admission=None)
    assert "ordered key" not in table(older, path)
    shown = AdmissionRecord(
        limited=9001, ordered=2002, rated=303, rule_versions=44, existed=55, expired=6
    )
    finding = "jobs_of_an_ordered_key_run_one_after_the_other: two at once"
    newer = msgspec.structs.replace(record, admission=shown, findings=[finding])
    text = table(newer, path)
    assert "9,001 jobs had a key or a limit, 2,002 of them an ordered key" in text
    assert "More at work than a rule allows: 0. Out of order: 1." in text
