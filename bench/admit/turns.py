"""Turns: drains and pickups of howdah and of its peers, one after another, again and again.

A turn measures everything once, and another step is first in each turn. Ratios are taken within a
turn. Peers have fewer turns than howdah, and the slow ones take every third.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

from bench.admit.peers import CONTENDERS, HOWDAH, Contender
from bench.admit.rules import COMPARED, LIMITED, PICKUP, PLAIN, Rule
from bench.admit.sizes import Sizes
from bench.admit.variants import Variant, values_of
from bench.aggregate import percentile
from bench.install import Environment
from bench.measure.pickup import pickup
from bench.measure.run import drain
from bench.peer import Plan
from bench.server import Postgres

TRIED = 2000  # jobs that show how many fit into the time
LONGEST = 5.0  # seconds of a drain


@dataclass(frozen=True, slots=True)
class Step:
    """One measurement of a turn."""

    variant: Variant
    row: str
    plan: Plan
    is_pickup: bool = False

    def measure(self, postgres: Postgres) -> dict[str, float]:
        with self.variant.prepared(postgres) as prepared:
            if not self.is_pickup:
                return values_of(drain(self.plan, prepared))
            times = pickup(self.plan, prepared).pickups_ms
        return {f"p{percent}": round(percentile(times, percent), 3) for percent in (50, 99)}


def variant_of(contender: Contender, rule: Rule, environment: Environment) -> Variant:
    offer = contender.offers.get(rule.name)
    return Variant(contender.peer, environment, rule, offer.options if offer else {})


class JobsOfDrains:
    """How many jobs howdah drains under each rule: fewer where it would take too long."""

    def __init__(self, environment: Environment, sizes: Sizes, postgres: Postgres) -> None:
        self._environment, self._most, self._postgres = environment, sizes.jobs, postgres
        self._found: dict[str, int] = {}

    def of(self, rule: Rule) -> int:
        if rule.name not in self._found:
            self._found[rule.name] = min(self._most, self._in_time(rule))
        return self._found[rule.name]

    def _in_time(self, rule: Rule) -> int:
        if self._most <= TRIED:
            return self._most
        step = Step(variant_of(HOWDAH, rule, self._environment), "", Plan(TRIED))
        return max(TRIED, int(step.measure(self._postgres)["rate"] * LONGEST))


def steps_of_howdah(environment: Environment, sizes: Sizes, jobs: JobsOfDrains) -> list[Step]:
    """Return the drains under each rule and without one, and the pickups."""
    steps = [
        Step(variant_of(HOWDAH, rule, environment), f"drain_{rule.name}", Plan(jobs.of(rule)))
        for rule in (PLAIN, *LIMITED)
    ]
    pickups = [
        Step(
            variant_of(HOWDAH, rule, environment), f"pickup_{rule.name}", Plan(sizes.pickups), True
        )
        for rule in (PLAIN, PICKUP)
    ]
    return [*steps, *pickups]


def steps_of_peers(environments: Mapping[str, Environment], sizes: Sizes, turn: int) -> list[Step]:
    """Return the drains of the peers that have this turn, each where it has the rule."""
    if turn > sizes.turns_of_peers:
        return []
    measured = {rule.name for rule in LIMITED}  # howdah has these among its own
    return [
        Step(
            variant_of(contender, rule, environments[contender.peer.name]),
            f"drain_{rule.name}",
            Plan(min(offer.jobs, sizes.jobs)),
        )
        for contender in CONTENDERS
        for rule in COMPARED
        if contender.peer.name in environments
        and (offer := contender.offers.get(rule.name)) is not None
        and (turn - 1) % offer.every == 0
        and not (contender is HOWDAH and rule.name in measured)
    ]


def rotated(steps: Sequence[Step], turn: int) -> Generator[Step]:
    """Yield the steps of a turn: another one is first in each."""
    first = (turn - 1) % len(steps) if steps else 0
    yield from (*steps[first:], *steps[:first])
