"""History: what the sessions of a stress did, and the promises that it must show.

`check` returns each promise that was broken, as sentences. test_stress.py breaks the engine on
purpose and expects them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from tests.support.admission import Span, Turn, overtaken, together


class Rule(NamedTuple):
    """What limits the jobs of a type."""

    slots: int | None  # per key
    ordered: bool = False
    limit: str | None = None
    fair: bool = False


class Run(NamedTuple):
    """An attempt as its worker saw it: between the answer of the claim and the next call."""

    job: UUID
    job_type: str
    key: str | None
    began: float
    ended: float


@dataclass
class History:
    rules: dict[str, Rule]
    limits: dict[str, int]
    runs: list[Run] = field(default_factory=list[Run])
    lost: set[UUID] = field(default_factory=set[UUID])  # somebody else ended or took the attempt
    enqueued: list[list[tuple[str, str | None, UUID]]] = field(
        default_factory=list[list[tuple[str, str | None, UUID]]]
    )  # per producer, in the order of its commits
    looks: list[str] = field(default_factory=list[str])  # what an observer found wrong
    left: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])  # jobs that never end
    errors: list[str] = field(default_factory=list[str])


def check(history: History) -> list[str]:
    return [f"{p.__name__}: {broken}" for p in PROMISES for broken in p(history)]


def nothing_waits_for_ever(history: History) -> Iterator[str]:
    for job in history.left[:5]:
        yield f"{job}"


def no_snapshot_shows_too_many_holders(history: History) -> Iterator[str]:
    yield from history.looks[:5]


def no_session_gets_an_error(history: History) -> Iterator[str]:
    yield from history.errors[:5]


def no_more_jobs_run_than_there_are_slots(history: History) -> Iterator[str]:
    groups: defaultdict[tuple[str, str], list[Span[UUID]]] = defaultdict(list)
    slots: dict[tuple[str, str], int] = {}
    for run in history.runs:
        if run.job in history.lost:
            continue
        rule = history.rules[run.job_type]
        names: list[tuple[tuple[str, str], int]] = []
        if run.key is not None and rule.slots is not None:
            names.append(((run.job_type, run.key), rule.slots))
        if rule.limit is not None and rule.limit in history.limits:
            names.append((("limit", rule.limit), history.limits[rule.limit]))
        for name, most in names:
            slots[name] = most
            groups[name].append(Span(run.began, run.ended, run.job))
    for name, spans in groups.items():
        running = max(len(at_work) for at_work in together(spans))
        if running > slots[name]:
            yield f"{running} jobs of {name} ran at once"


def ordered_jobs_run_in_the_order_of_enqueueing(history: History) -> Iterator[str]:
    runs: defaultdict[UUID, list[Run]] = defaultdict(list)
    for run in history.runs:
        runs[run.job].append(run)
    for producer in history.enqueued:
        by_key: defaultdict[tuple[str, str], list[Turn[UUID]]] = defaultdict(list)
        for nth, (job_type, key, job) in enumerate(producer):
            if key is None or not history.rules[job_type].ordered:
                continue
            if runs[job] and job not in history.lost:
                began = min(run.began for run in runs[job])
                ended = max(run.ended for run in runs[job])
                by_key[job_type, key].append(Turn(nth, nth, began, ended, job))
        for name, turns in by_key.items():
            for first, second in overtaken(turns):
                yield f"{second.job} of {name} ran before {first.job} had ended"


PROMISES = (
    nothing_waits_for_ever,
    no_snapshot_shows_too_many_holders,
    no_session_gets_an_error,
    no_more_jobs_run_than_there_are_slots,
    ordered_jobs_run_in_the_order_of_enqueueing,
)
