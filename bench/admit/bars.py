"""Bars: what howdah has to reach with keys, order, limits, rates and fair share.

Most are ratios within a turn, as in targets.py. A promise that holds always, such as a rate that is
never exceeded, is judged by its worst value.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.admit.peers import CONTENDERS, HOWDAH
from bench.admit.rules import COMPARED, LIMITED, RATE
from bench.aggregate import Results
from bench.interval import Interval, interval
from bench.targets import Sense, Target, howdah, of

DRAINS = {
    "keys_10000": 0.55,
    "keys_1000_3": 0.6,
    "ordered_1": 0.5,
    "ordered_100": 0.5,
    "limit_50": 0.3,
}
LEFT_BESIDE_SNAPSHOT = 0.9
LOOK_GROWTH = 1.2
BURST = 1 + RATE // 20  # one, and what the rate allows in 50 ms


@dataclass(frozen=True, slots=True)
class Always(Target):
    """A bar that every value has to reach: the interval is from the lowest to the highest."""

    def measured(self, results: Results) -> Interval | None:
        values = list((self.ours(results) or {}).values())
        return Interval(interval(values).median, (min(values), max(values))) if values else None


@dataclass(frozen=True, slots=True)
class InEveryTurn(Target):
    """A ratio of few turns: the interval is from the lowest to the highest."""

    def measured(self, results: Results) -> Interval | None:
        ours, theirs = self.ours(results) or {}, (self.other(results) or {}) if self.other else {}
        ratios = [ours[turn] / theirs[turn] for turn in ours if theirs.get(turn)]
        return Interval(interval(ratios).median, (min(ratios), max(ratios))) if ratios else None


def _ratio(title: str, sense: Sense, bound: float, ours: str, other: str) -> Target:
    return Target(title, sense, bound, howdah(ours), howdah(other))


BARS = (
    *(
        _ratio(
            f"drain, {rule.title}, to the same jobs without a key",
            "at least",
            DRAINS[rule.name],
            f"drain_{rule.name}.rate",
            "drain_plain.rate",
        )
        for rule in LIMITED
    ),
    _ratio(
        "pages of a claim beside jobs that wait for one key, to none",
        "at most",
        1.1,
        "claim.beside_pages",
        "claim.alone_pages",
    ),
    _ratio(
        "pickup p50 of a job with a key, to a plain one",
        "at most",
        1.3,
        "pickup_keyed.p50",
        "pickup_plain.p50",
    ),
    Target(
        "first job of a tenant behind the crowd, fair",
        "below",
        100.0,
        howdah("fair.first_ms"),
        None,
        " ms",
    ),
    *(
        bar
        for row, title in (("rate", ""), ("rate_held", ", beside a held snapshot"))
        for bar in (
            Always(
                f"a rate of {RATE:,}/s{title}: starts per second",
                "at least",
                0.99 * RATE,
                howdah(f"{row}.mean"),
                None,
                "/s",
            ),
            Always(
                f"a rate of {RATE:,}/s{title}: starts per second",
                "at most",
                1.01 * RATE,
                howdah(f"{row}.mean"),
                None,
                "/s",
            ),
            Always(
                f"a rate of {RATE:,}/s{title}: most starts above it, in any window",
                "at most",
                BURST,
                howdah(f"{row}.above"),
                None,
                "",
            ),
        )
    ),
    InEveryTurn(
        f"a look beside a held snapshot, at {RATE:,}/s: late to early",
        "at most",
        LOOK_GROWTH,
        howdah("rate_held.late_look_ms"),
        howdah("rate_held.look_ms"),
    ),
    *(
        _ratio(
            f"drain, {rule.title}, beside a held snapshot, to without",
            "at least",
            LEFT_BESIDE_SNAPSHOT,
            f"snapshot_{rule.name}.held",
            f"snapshot_{rule.name}.free",
        )
        for rule in LIMITED
    ),
    *(
        InEveryTurn(
            f"drain, {rule.title}, to {contender.peer.title}",
            "at least",
            1.0,
            howdah(f"drain_{rule.name}.rate"),
            of(contender.peer.name, f"drain_{rule.name}.rate"),
        )
        for rule in COMPARED
        for contender in CONTENDERS
        if contender is not HOWDAH and rule.name in contender.offers
    ),
    *(
        Always(
            f"{rule.title}, jobs of 1 ms by two processes: most at once",
            "at most",
            rule.slots,
            howdah(f"check_{rule.name}.most_at_once"),
            None,
            "",
        )
        for rule in COMPARED
    ),
    Always(
        "one ordered key, jobs of 1 ms by two processes: order violations",
        "at most",
        0,
        howdah("check_ordered_1.order_violations"),
        None,
        "",
    ),
)
