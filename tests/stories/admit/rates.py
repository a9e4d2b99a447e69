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
from tests.stories.admit.log import Admission, Versions
from tests.stories.admit.slots import held_slots, slot_of_limit
from tests.stories.story_result import StoryResult
from tests.support.admission import Start, windows_with_too_many_starts

MANY = 1e6  # starts per second, where there is no rate


def no_window_has_more_starts_than_its_rate_allows(result: StoryResult) -> Iterator[str]:
    log = result.move_log.admission
    by_limit: defaultdict[str, list[tuple[AtWork, Admission]]] = defaultdict(list)
    for work in result.at_work:
        for limited_by, since, until in held_slots(
            log.admissions.get(work.run.job, []), slot_of_limit
        ):
            if since.at <= work.claim.at < until:
                by_limit[limited_by].append((work, since))
    for limited_by, starts in by_limit.items():
        rule = log.limit_rule(limited_by)
        starts.sort(key=lambda start: start[0].claim.began)
        for some in _with_a_rate(rule, starts):
            earned = _earned(rule)
            windows = windows_with_too_many_starts(
                Start(earned(work.claim.began), _largest_burst(rule, work, since))
                for work, since in some
            )
            for first, last, allowed in windows:
                seconds = some[last][0].claim.began - some[first][0].claim.began
                yield (
                    f"{last - first + 1} jobs of {limited_by} started within {seconds:.3f} s, "
                    f"{allowed:.1f} allowed, from {some[first][0].run.job} "
                    f"to {some[last][0].run.job}"
                )
                break


def _with_a_rate(
    rule: Versions, starts: list[tuple[AtWork, Admission]]
) -> Iterator[list[tuple[AtWork, Admission]]]:
    """Yield the parts of these starts in which every version of the rule has a rate."""
    part: list[tuple[AtWork, Admission]] = []
    for work, since in starts:
        if all(version.per_second for version in rule.valid(since.began, work.claim.at)):
            part.append((work, since))
        elif part:
            yield part
            part = []
    if part:
        yield part


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
