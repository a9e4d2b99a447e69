"""Slots: never more jobs of a key, or of a named limit, are at work than a rule allows.

A job at work holds a slot since it was admitted. So when the last of some jobs that are at work
together was admitted, all of them held one. There may be no more of them than the largest rule
allowed that its admission may have read. This holds for a rule that was lowered meanwhile, too:
jobs that were admitted before may still begin, and nobody is admitted until few enough are left.

A job that ran already when its rule began to limit it was not admitted, so it is not counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from tests.stories.admit.at_work import AtWork
from tests.stories.admit.log import FOREVER, Admission, Versions
from tests.stories.story_result import StoryResult
from tests.support.admission import Span, together

HOLDS_SLOT_OF_KEY = frozenset({"admitted", "backoff", "limit"})

Held = Span[tuple[AtWork, Admission]]  # a part of an attempt, and how the job got its slot


def no_key_has_more_at_work_than_allowed(result: StoryResult) -> Iterator[str]:
    log = result.move_log.admission
    groups: defaultdict[tuple[str, str], list[Held]] = defaultdict(list)
    for work in result.at_work:
        if work.key is not None:
            for _, held in _held(work, log.admissions.get(work.run.job, []), _key_slot):
                groups[work.job_type, work.key].append(held)
    for (job_type, key), spans in groups.items():
        yield from _too_many(f"key {key} of {job_type}", spans, log.key_rule(job_type))


def no_limit_has_more_at_work_than_allowed(result: StoryResult) -> Iterator[str]:
    log = result.move_log.admission
    groups: defaultdict[str, list[Held]] = defaultdict(list)
    for work in result.at_work:
        for limited_by, held in _held(work, log.admissions.get(work.run.job, []), slot_of_limit):
            groups[limited_by].append(held)
    for limited_by, spans in groups.items():
        yield from _too_many(f"limit {limited_by}", spans, log.limit_rule(limited_by))


def no_job_with_a_limit_begins_unadmitted(result: StoryResult) -> Iterator[str]:
    log = result.move_log.admission
    for work in result.at_work:
        if work.run.job not in log.admissions and log.is_limited(work.job_type, work.key):
            yield f"job {work.run.job} of {work.job_type}, key {work.key}, was never admitted"


def slot_of_limit(admission: Admission) -> str | None:
    """Return the limit of which the job holds a slot."""
    return admission.limited_by if admission.admission == "admitted" else None


def _key_slot(admission: Admission) -> str | None:
    return "key" if admission.admission in HOLDS_SLOT_OF_KEY else None


def _held(
    work: AtWork, admissions: list[Admission], slot_of: Callable[[Admission], str | None]
) -> Iterator[tuple[str, Held]]:
    """Yield the slots that an attempt held while it was at work."""
    for slot, since, until in held_slots(admissions, slot_of):
        began, ended = max(work.began, since.at), min(work.ended, until)
        if began < ended and not since.held:
            yield slot, Span(began, ended, (work, since))


def held_slots(
    admissions: Iterable[Admission], slot_of: Callable[[Admission], str | None]
) -> Iterator[tuple[str, Admission, float]]:
    """Yield (slot, the admission that gave it, until when the job held it)."""
    since: Admission | None = None
    slot: str | None = None
    for admission in admissions:
        now = slot_of(admission)
        if now == slot:
            continue
        if slot is not None and since is not None:
            yield slot, since, admission.at
        slot, since = now, admission
    if slot is not None and since is not None:
        yield slot, since, FOREVER


def _too_many(name: str, spans: list[Held], rule: Versions) -> Iterator[str]:
    for held in together(spans):
        last = max((admission for _, _, (_, admission) in held), key=lambda each: each.at)
        most = rule.most_at_once(last.began, last.at)
        if len(held) > most:
            jobs = ", ".join(work.run.job for _, _, (work, _) in held)
            yield f"{len(held)} jobs of {name} were at work at once, {most} allowed: {jobs}"
            return
