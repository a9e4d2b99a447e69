"""Rates: no window of time has more starts than the rate allows for it, and its burst.

An attempt starts when it is claimed. Where a rule was changed, the larger rate counts as long as
a transaction may have read it, and so does the largest burst that was valid for a job of the
window, from its admission on.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise
from math import isfinite

from tests.stories.admit.at_work import AtWork
from tests.stories.admit.log import Admission, AdmissionLog, Versions
from tests.stories.admit.slots import held_slots, slot_of_limit
from tests.stories.story_result import StoryResult
from tests.support.admission import Start, windows_with_too_many_starts

MANY = 1e6  # starts per second, where there is no rate


Starts = list[tuple[AtWork, Admission]]  # in the order of their times


def no_window_has_more_starts_than_its_rate_allows(result: StoryResult) -> Iterator[str]:
    for limited_by, starts in starts_under_a_rate(result).items():
        rule = result.move_log.admission.limit_rule(limited_by)
        earned = _earned(rule)
        windows = windows_with_too_many_starts(
            Start(earned(work.claim.began), _largest_burst(rule, work, since))
            for work, since in starts
        )
        for first, last, allowed in windows:
            (begin, _), (end, _) = starts[first], starts[last]
            yield (
                f"{last - first + 1} jobs of {limited_by} started within "
                f"{end.claim.began - begin.claim.began:.3f} s, {allowed:.1f} allowed, "
                f"from {begin.run.job} to {end.run.job}"
            )
            break


def starts_under_a_rate(result: StoryResult) -> dict[str, Starts]:
    """Return the attempts whose limit had a rate, by the limit (and key, for one per key)."""
    log = result.move_log.admission
    by_limit: defaultdict[str, Starts] = defaultdict(list)
    for work in result.at_work:
        for limited_by, since, until in held_slots(
            log.admissions.get(work.run.job, []), slot_of_limit
        ):
            if since.at <= work.claim.at < until and _has_a_rate(log, limited_by, work, since):
                by_limit[limited_by].append((work, since))
    for starts in by_limit.values():
        starts.sort(key=lambda start: start[0].claim.began)
    return by_limit


def _has_a_rate(log: AdmissionLog, limited_by: str, work: AtWork, since: Admission) -> bool:
    valid = log.limit_rule(limited_by).valid(since.began, work.claim.at)
    return all(version.per_second for version in valid)


def _largest_burst(rule: Versions, work: AtWork, since: Admission) -> int:
    return max(version.burst or 0 for version in rule.valid(since.began, work.claim.at))


def _earned(rule: Versions) -> Callable[[float], float]:
    """Return how many starts the rule has allowed until a time, from its first version on."""
    edges = sorted(
        {at for version in rule.rules for at in (version.written, version.visible) if isfinite(at)}
    )
    rates = [max(each.per_second or MANY for each in rule.valid(at, at)) for at in edges]
    parts = ((later - at) * rate for (at, later), rate in zip(pairwise(edges), rates, strict=False))
    totals = list(accumulate(parts, initial=0.0))

    def earned(at: float) -> float:
        nth = max(bisect.bisect_right(edges, at) - 1, 0)
        return totals[nth] + (at - edges[nth]) * rates[nth]

    return earned
