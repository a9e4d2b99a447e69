"""Record: the results of a soak, kept in bench/records/<date>-soak/soak.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import msgspec

from tests.stories.admit.rates import starts_under_a_rate
from tests.stories.history import EXISTED
from tests.stories.story import FaultOutcome
from tests.stories.story_result import StoryResult

RECORDS = Path(__file__).resolve().parents[3] / "bench" / "records"
FILE = "soak.json"


class FaultRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of fault. Seconds are counted from the end of the fault."""

    name: str
    key: str  # the name for `make soak FAULT=…`
    injected: int
    under_way: int  # live jobs when it began: the median
    under_way_most: int
    resumed: float  # until a job enqueued after the fault was done: the median
    resumed_worst: float
    caught_up: float  # until every job enqueued before was done: the median
    caught_up_worst: float


class AdmissionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that had to wait for something, and what happened to their rules meanwhile."""

    limited: int  # jobs with a key or a limit
    ordered: int  # of these, jobs of an ordered key
    rated: int  # attempts that started under a rate
    rule_versions: int
    existed: int  # enqueues that met the job with their unique key
    expired: int


class SoakRecord(msgspec.Struct, frozen=True, kw_only=True):
    command: str
    date: str
    commit: str
    machine: dict[str, str]
    postgres: str
    seed: int
    minutes: float
    workers: int
    acknowledged: int  # enqueues, by the answer that the producer got
    unknown: int
    rolled_back: int
    jobs: int
    attempts: int
    given_up: int  # attempts taken from workers that were silent
    lost: int
    settled_twice: int
    findings: list[str]  # every broken promise, in the checker's words
    faults: list[FaultRecord]
    left_out: dict[str, str]  # faults that could not be injected here, and why
    admission: AdmissionRecord | None = None  # None: a record from before there were keys


def of_faults(outcomes: Sequence[tuple[str, FaultOutcome]]) -> list[FaultRecord]:
    """Summarize the outcomes of each kind of fault."""
    names = dict.fromkeys((key, outcome.name) for key, outcome in outcomes)
    records: list[FaultRecord] = []
    for key, name in names:
        same = [outcome for its_key, outcome in outcomes if (its_key, outcome.name) == (key, name)]
        records.append(
            FaultRecord(
                name=name,
                key=key,
                injected=len(same),
                under_way=round(median(outcome.under_way for outcome in same)),
                under_way_most=max(outcome.under_way for outcome in same),
                resumed=round(median(outcome.resumed for outcome in same), 2),
                resumed_worst=round(max(outcome.resumed for outcome in same), 2),
                caught_up=round(median(outcome.caught_up for outcome in same), 2),
                caught_up_worst=round(max(outcome.caught_up for outcome in same), 2),
            )
        )
    return sorted(records, key=lambda fault: fault.name)


def counts(result: StoryResult, findings: Sequence[str]) -> dict[str, int]:
    """Count the results of the whole story."""
    answers = Counter(enqueued.how for enqueued in result.history.enqueued)
    broken = Counter(finding.partition(":")[0] for finding in findings)
    attempts = sum(1 for m in result.moves if m.after is not None and m.after.status == "claimed")
    return {
        "acknowledged": answers["ok"],
        "unknown": answers["unknown"],
        "rolled_back": answers["rolled back"],
        "jobs": len(result.move_log.jobs),
        "attempts": attempts,
        "given_up": len(result.taken),
        "lost": broken["acknowledged_enqueues_are_kept"],
        "settled_twice": broken["an_attempt_ends_once"],
    }


def admission_counts(result: StoryResult) -> AdmissionRecord:
    """Count what the story has shown of keys, limits, rates, unique keys and expiry."""
    jobs, log = result.move_log.jobs, result.move_log.admission
    return AdmissionRecord(
        limited=len(log.admissions),
        ordered=sum(
            1 for id in log.admissions if jobs[id]["key"] and jobs[id]["job_type"] in log.ordered
        ),
        rated=sum(len(starts) for starts in starts_under_a_rate(result).values()),
        rule_versions=sum(
            len(versions.rules) - 1 for versions in (*log.types.values(), *log.limits.values())
        ),
        existed=sum(1 for enqueued in result.history.enqueued if enqueued.how == EXISTED),
        expired=sum(
            1
            for job in jobs.values()
            if job["status"] == "cancelled" and (job["last_error"] or "").startswith("expired:")
        ),
    )


def keep(record: SoakRecord, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    path.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")
    return path


def newest() -> tuple[SoakRecord, Path]:
    """Read the newest record that is kept."""
    path = max(RECORDS.glob(f"*-soak/{FILE}"))
    return msgspec.json.decode(path.read_bytes(), type=SoakRecord), path
