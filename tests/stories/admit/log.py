"""Admission log: when each job was admitted, and every version of every rule.

A transaction reads a rule after it began and before it admits. So it may have read each version
that was written before it admitted, and whose successor was not yet visible when it began. A
version is visible once any transaction of the move log had a snapshot that shows it.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import psycopg

TRIGGERS = Path(__file__).with_name("log.sql").read_text(encoding="utf-8")

ANY_NUMBER = 10**9
FOREVER = float("inf")

RULES = """
    select r.kind, r.name, extract(epoch from r.at)::float8, extract(epoch from seen.at)::float8,
           r.at_once, coalesce(r.ordered, false), r.limit_name, r.per_second, r.burst,
           r.removed
    from move_log.rules as r
    left join lateral (
        select m.at from move_log.moves as m
        where m.at >= r.at and pg_visible_in_snapshot(r.xid, m.snapshot)
        order by m.at limit 1) as seen on true
    order by r.nth
"""
ADMISSIONS = """
    select id::text, extract(epoch from at)::float8, extract(epoch from began)::float8,
           held, admission, limited_by
    from move_log.admissions order by nth
"""


class Admission(NamedTuple):
    """One change of what a job waits for."""

    at: float
    began: float  # its transaction
    held: bool  # a worker held the job: its rule was changed while it ran
    admission: str | None
    limited_by: str | None


class Rule(NamedTuple):
    """One version of the rule of a job type or of a named limit."""

    written: float
    visible: float  # from then on every new transaction sees it
    at_once: int | None
    ordered: bool = False
    limit_name: str | None = None
    per_second: float | None = None
    burst: int | None = None


@dataclass
class Versions:
    """All versions of one rule, the oldest first."""

    rules: list[Rule]

    def valid(self, since: float, until: float) -> Iterator[Rule]:
        """Yield the versions that a transaction may have read between these times."""
        nth = bisect.bisect_right(self.rules, until, key=lambda rule: rule.written)
        while nth > 0:
            nth -= 1
            yield self.rules[nth]
            if self.rules[nth].visible <= since:
                return

    def most_at_once(self, since: float, until: float) -> int:
        return max(
            ANY_NUMBER if rule.at_once is None else rule.at_once
            for rule in self.valid(since, until)
        )


NO_TYPE_RULE = Rule(-FOREVER, -FOREVER, at_once=1)
NO_LIMIT = Rule(-FOREVER, -FOREVER, at_once=None)


@dataclass
class AdmissionLog:
    """Everything that the database knows about admission in a story."""

    admissions: dict[str, list[Admission]] = field(default_factory=dict[str, list[Admission]])
    types: dict[str, Versions] = field(default_factory=dict[str, Versions])
    limits: dict[str, Versions] = field(default_factory=dict[str, Versions])

    def key_rule(self, job_type: str) -> Versions:
        """Return the rule of a type; a key of a type without a rule has one slot."""
        return self.types.get(job_type) or Versions([NO_TYPE_RULE])

    def limit_rule(self, limited_by: str) -> Versions:
        """Return the rule of a named limit, also if `limited_by` names one of its keys."""
        return self.limits.get(limited_by.partition(":")[0]) or Versions([NO_LIMIT])

    @cached_property
    def ordered(self) -> frozenset[str]:
        """The job types whose keys are ordered, by every version of their rule."""
        return frozenset(
            job_type
            for job_type, versions in self.types.items()
            if all(rule.ordered for rule in versions.rules if rule is not NO_TYPE_RULE)
        )

    def is_limited(self, job_type: str, key: str | None) -> bool:
        """Whether every version of its rule limits such a job."""
        return all(
            (key is not None and rule.at_once is not None) or rule.limit_name is not None
            for rule in self.key_rule(job_type).rules
            if rule is not NO_TYPE_RULE or job_type not in self.types
        )


def install(dsn: str) -> None:
    """Create the triggers; move_log.install comes first."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(TRIGGERS.encode())


def read(dsn: str, offset: float) -> AdmissionLog:
    """Read the log; `offset` leads from the database's clock to that of the history."""
    types: dict[str, list[Rule]] = defaultdict(lambda: [NO_TYPE_RULE])
    limits: dict[str, list[Rule]] = defaultdict(lambda: [NO_LIMIT])
    admissions: dict[str, list[Admission]] = defaultdict(list)
    with psycopg.connect(dsn) as connection:
        for kind, name, at, seen, *columns, removed in connection.execute(RULES):
            versions, none = (types, NO_TYPE_RULE) if kind == "type" else (limits, NO_LIMIT)
            rule = none if removed else Rule(0, 0, *columns)
            visible = FOREVER if seen is None else seen + offset
            versions[name].append(rule._replace(written=at + offset, visible=visible))
        for id, at, began, *state in connection.execute(ADMISSIONS):
            admissions[id].append(Admission(at + offset, began + offset, *state))
    return AdmissionLog(
        dict(admissions),
        {name: Versions(rules) for name, rules in types.items()},
        {name: Versions(rules) for name, rules in limits.items()},
    )
