"""Rules: what limits the jobs of a measurement.

Jobs have the same payload under every rule, with a key in it; the keys are used in turn. A plain
job has no rule that reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["plain", "keys", "ordered", "limit", "rate", "fair"]
RATE = 1000  # starts per second, of howdah alone
RATE_OF_PEERS = 200  # which every peer with rates can run


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule; `slots` are those of each key, of the limit, or the starts per second."""

    name: str
    title: str
    kind: Kind
    keys: int = 1
    slots: int = 1

    @property
    def options(self) -> dict[str, str | int]:
        """Return what a driver is told."""
        return {"kind": self.kind, "keys": self.keys, "slots": self.slots}


PLAIN = Rule("plain", "without a key", "plain")
LIMITED = (
    Rule("keys_10000", "10,000 keys, one at a time", "keys", 10_000),
    Rule("keys_1000_3", "1,000 keys, three at a time", "keys", 1000, 3),
    Rule("ordered_1", "one ordered key", "ordered"),
    Rule("ordered_100", "100 ordered keys", "ordered", 100),
    Rule("limit_50", "one limit of 50", "limit", slots=50),
)
KEYS = Rule("keys_1000", "1,000 keys, one at a time", "keys", 1000)
RATED = Rule("rate", f"a rate of {RATE:,}/s", "rate", slots=RATE)
RATED_PEERS = Rule("rate_200", f"a rate of {RATE_OF_PEERS}/s", "rate", slots=RATE_OF_PEERS)
FAIR = Rule("fair", "fair share between keys", "fair")
PICKUP = Rule("keyed", "a job with a key", "keys", 1000)

RULES = {rule.name: rule for rule in (PLAIN, *LIMITED, KEYS, RATED, RATED_PEERS, FAIR, PICKUP)}
COMPARED = tuple(RULES[name] for name in ("keys_1000", "ordered_1", "limit_50"))  # with peers
