"""Admit: the rules that decide when a job may join the line, as code declares them.

Comes before  handler.py            a job type has a `KeyRule` and the name of a limit
              store/admit.py        which registers them when a worker starts
In SQL        sql/35_admit/

A key says what a job must not disturb. It is made of the payload, before the job is enqueued.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec

from howdah.checks.arguments import check_flag, check_text, check_whole
from howdah.checks.durations import check_length
from howdah.errors import BadInput
from howdah.text.reasons import describe, shown

KeyOf = str | Callable[[Mapping[str, Any]], object]  # a parameter, or a function of the payload

_MOST = 2**31 - 1
_SHORTEST, _LONGEST = timedelta(milliseconds=1), timedelta(days=366)


@dataclass(frozen=True, init=False)
class Rate:
    """How many jobs may start per time: `Rate(100, per=timedelta(minutes=1), burst=10)`.

    `burst` is how many may start at once after a pause. The default is one, and what the rate
    allows in 50 ms.
    """

    count: int
    per: timedelta
    burst: int | None

    def __init__(
        self, count: int, *, per: timedelta | float = 1.0, burst: int | None = None
    ) -> None:
        values = {
            "count": check_whole("count in Rate(…)", count, 1, _MOST),
            "per": check_length("per in Rate(…)", per, _LONGEST),
            "burst": None if burst is None else check_whole("burst in Rate(…)", burst, 1, _MOST),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if self.per < _SHORTEST or self.per / self.count < timedelta(microseconds=1):
            raise BadInput(
                f"per in Rate(…) must be at least a millisecond, and a microsecond per start, "
                f"not {self.per.total_seconds()} s for {self.count}"
            )


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that all job types share that name it."""

    name: str
    at_once: int | None
    rate: Rate | None
    per_key: bool

    def row(self) -> dict[str, object]:
        """Describe it with the names of the parameters of howdah.set_limit."""
        rate = self.rate
        return {
            "name": self.name,
            "at_once": self.at_once,
            "rate": None if rate is None else rate.count,
            "per": None if rate is None else f"{rate.per.total_seconds():f} s",
            "burst": None if rate is None else rate.burst,
            "per_key": self.per_key,
        }


class KeyRule(msgspec.Struct, frozen=True, kw_only=True):
    """What limits the jobs of a type."""

    key: KeyOf | None = None
    at_once: int | None = None  # per key; None: one, or as many as `limit` or `fair` allows
    ordered: bool = False
    fair: bool = False
    limit: str | None = None

    @property
    def registered(self) -> dict[str, object]:
        """Describe it for howdah.register_limits; empty: there is no rule."""
        if self.at_once is None and self.limit is None and not self.fair:
            return {}
        rule: dict[str, object] = {
            "at_once": self.at_once,
            "ordered": self.ordered,
            "limit": self.limit,
        }
        return {**rule, "fair": True} if self.fair else rule


def key_rule(
    key: object = None,
    at_once: object = None,
    ordered: object = False,
    limit: object = None,
    fair: object = False,
) -> KeyRule:
    """Check the options of a job type."""
    if key is not None and not isinstance(key, str) and not callable(key):
        raise BadInput(
            f"key must be the name of a parameter, or a function of the payload, not {shown(key)}"
        )
    slots = None if at_once is None else check_whole("at_once", at_once, 1, _MOST)
    if check_flag("ordered", ordered):
        if slots not in (None, 1):
            raise BadInput(f"at_once must be 1, or left out, where ordered=True, not {slots}")
        if fair is True:
            raise BadInput(
                "leave out ordered or fair: ordered keys have one slot each, "
                "so they take turns already"
            )
        slots = 1
    if check_flag("fair", fair) and slots is not None:
        raise BadInput(
            f"leave out at_once={slots} or fair: fair=True sets no limit per key, and with one "
            "the keys take turns without it"
        )
    return KeyRule(
        key=key,  # type: ignore[arg-type]
        at_once=slots,
        ordered=bool(ordered),
        fair=bool(fair),
        limit=None if limit is None else check_limit_name(limit),
    )


def named_limit(name: object, at_once: object, rate: object, per_key: object) -> Limit:
    """Check the definition of a named limit."""
    if rate is not None and not isinstance(rate, Rate):
        raise BadInput(f"rate must be a Rate, such as Rate(100, per=60), not {shown(rate)}")
    if at_once is None and rate is None:
        raise BadInput(f"the limit {shown(name)} needs at_once or a rate")
    return Limit(
        name=check_limit_name(name),
        at_once=None if at_once is None else check_whole("at_once", at_once, 1, _MOST),
        rate=rate,
        per_key=check_flag("per_key", per_key),
    )


def check_limit_name(name: object) -> str:
    """Refuse a name that the database would refuse."""
    checked = check_text("the name of a limit", name, 100)
    if ":" in checked or not checked.isprintable():
        raise BadInput(
            f"the name of a limit must have no colon and no control character, not {shown(name)}"
        )
    return checked


def check_key(key: object) -> str:
    """Return a concurrency key as text; refuses what the database would refuse."""
    if isinstance(key, UUID) or (isinstance(key, int) and not isinstance(key, bool)):
        key = str(key)
    if not isinstance(key, str):
        raise BadInput(f"key must be text, a whole number or a UUID, not {shown(key)}")
    if not 1 <= len(key) <= 200:
        raise BadInput(
            f"key must have 1 to 200 characters, this one has {len(key)}: "
            "use a short name such as tenant-7, or a hash"
        )
    if any(ord(c) < 32 or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000 for c in key):
        raise BadInput(f"key must have no control characters, this one does: {shown(key)}")
    return key


def key_of(rule: KeyRule, job_type: str, arguments: Mapping[str, Any]) -> str | None:
    """Make the key of one job; None: it has no key."""
    if rule.key is None:
        return None
    if isinstance(rule.key, str):
        value = arguments[rule.key]
    else:
        try:
            value = rule.key(arguments)
        except Exception as error:
            raise BadInput(
                f"the function for the key of {job_type} failed: {describe(error)}"
            ) from error
    try:
        return None if value is None else check_key(value)
    except BadInput as error:
        raise BadInput(f"{job_type}: {error}") from None
