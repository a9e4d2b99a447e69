"""Record: what a soak found, as it is kept in bench/records/<date>-soak/soak.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import msgspec

from tests.stories.facts import Facts
from tests.stories.story import Suffered

RECORDS = Path(__file__).resolve().parents[3] / "bench" / "records"
FILE = "soak.json"


class FaultRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of fault. Seconds are counted from the end of the fault."""

    name: str
    key: str  # what `make soak FAULT=…` takes
    injected: int
    under_way: int  # live jobs when it began: the median
    under_way_most: int
    resumed: float  # until a job handed over after the fault was done: the median
    resumed_worst: float
    caught_up: float  # until everything handed over before was done: the median
    caught_up_worst: float


class SoakRecord(msgspec.Struct, frozen=True, kw_only=True):
    command: str
    date: str
    commit: str
    machine: dict[str, str]
    postgres: str
    seed: int
    minutes: float
    workers: int
    acknowledged: int  # enqueues, by what the producer heard
    unknown: int
    rolled_back: int
    jobs: int
    attempts: int
    given_up: int  # attempts taken from workers that were silent
    lost: int
    settled_twice: int
    findings: list[str]  # every broken promise, in the checker's words
    faults: list[FaultRecord]
    left_out: dict[str, str]  # what could not be done here, and why


def of_faults(suffered: Sequence[tuple[str, Suffered]]) -> list[FaultRecord]:
    """Put together what is known of each kind of fault."""
    names = dict.fromkeys((key, one.name) for key, one in suffered)
    found: list[FaultRecord] = []
    for key, name in names:
        those = [one for its_key, one in suffered if (its_key, one.name) == (key, name)]
        found.append(
            FaultRecord(
                name=name,
                key=key,
                injected=len(those),
                under_way=round(median(one.under_way for one in those)),
                under_way_most=max(one.under_way for one in those),
                resumed=round(median(one.resumed for one in those), 2),
                resumed_worst=round(max(one.resumed for one in those), 2),
                caught_up=round(median(one.caught_up for one in those), 2),
                caught_up_worst=round(max(one.caught_up for one in those), 2),
            )
        )
    return sorted(found, key=lambda fault: fault.name)


def counts(facts: Facts, findings: Sequence[str]) -> dict[str, int]:
    """Count what the whole story came to."""
    heard = Counter(one.how for one in facts.history.enqueued)
    broken = Counter(finding.partition(":")[0] for finding in findings)
    attempts = sum(1 for m in facts.moves if m.now is not None and m.now.status == "claimed")
    return {
        "acknowledged": heard["ok"],
        "unknown": heard["unknown"],
        "rolled_back": heard["rolled back"],
        "jobs": len(facts.trail.jobs),
        "attempts": attempts,
        "given_up": len(facts.taken),
        "lost": broken["acknowledged_enqueues_are_kept"],
        "settled_twice": broken["an_attempt_ends_once"],
    }


def keep(record: SoakRecord, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    path.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")
    return path


def newest() -> tuple[SoakRecord, Path]:
    """Read the newest record that is kept."""
    path = max(RECORDS.glob(f"*-soak/{FILE}"))
    return msgspec.json.decode(path.read_bytes(), type=SoakRecord), path
