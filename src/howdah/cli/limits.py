"""howdah limits: list, set and remove the named limits and the rules of job types."""

from __future__ import annotations

from datetime import datetime, timedelta

import click
import msgspec

from howdah import Queue, observe
from howdah.admit import Rate, key_rule
from howdah.checks.limit_names import unknown_limit
from howdah.cli import formatting, options, output
from howdah.cli.options import dsn_option, json_option
from howdah.cli.run_on_queue import run_on_queue
from howdah.handler import check_job_type
from howdah.observe import Count, Limits, NamedLimit, TypeRule
from howdah.store import admit as store_admit
from howdah.store.admit import KEPT, Kept
from howdah.text.printable import one_line
from howdah.text.wording import instant, typed_length

ANY = "any"


def _number(value: str) -> int | str:
    """Parse a whole number, or `any`."""
    try:
        return value if value == ANY else int(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not a whole number: write one, or {ANY!r}."
        ) from None


@click.command()
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--at-once", type=_number, metavar="N", help="How many of its jobs may run at once.")
@click.option("--rate", type=_number, metavar="N", help="How many may start per time.")
@click.option(
    "--per", type=options.duration, metavar="DURATION", help="The time of --rate.  [default: 1s]"
)
@click.option("--burst", type=int, metavar="N", help="How many may start at once after a pause.")
@click.option(
    "--per-key/--not-per-key", default=None, help="Each key has the whole limit for itself."
)
@click.option(
    "--type", "job_type", metavar="TYPE", help="The rule of this job type, not a named limit."
)
@click.option("--ordered", is_flag=True, help="With --type: one job of a key after the other.")
@click.option("--fair", is_flag=True, help="With --type: no limit per key, but keys take turns.")
@click.option(
    "--limit", metavar="NAME", help="With --type: the named limit that its jobs need too."
)
@click.option("--remove", is_flag=True, help="Remove it; its jobs are limited by it no longer.")
@json_option
@dsn_option
def limits(
    name: str | None,
    at_once: int | str | None,
    rate: int | str | None,
    per: timedelta | None,
    burst: int | None,
    per_key: bool | None,
    job_type: str | None,
    ordered: bool,
    fair: bool,
    limit: str | None,
    remove: bool,
    as_json: bool,
    dsn: str | None,
) -> None:
    """List the named limits and the rules of types, or set or remove one.

    What is left out of a named limit stays as it is; `any` removes a value. The rule of a type is
    set as a whole: --at-once is per key. A change holds at once, for waiting jobs too. It stays
    until the code of a worker that starts says something else than before.
    """
    of_limit = (rate, per, burst, per_key)
    if name is not None and job_type is not None:
        raise click.UsageError("name a limit, or a type with --type, not both")
    if job_type is not None and any(value is not None for value in of_limit):
        raise click.UsageError("--rate, --per, --burst and --per-key are for a named limit")
    if job_type is None and (ordered or fair or limit is not None):
        raise click.UsageError("--ordered, --fair and --limit need --type")
    sets = at_once is not None or any(value is not None for value in of_limit)
    sets = sets or ordered or fair or limit is not None
    if name is None and job_type is None and (sets or remove):
        raise click.UsageError("name the limit to set or remove, or a type with --type")
    if rate in (None, ANY) and (per is not None or burst is not None):
        raise click.UsageError("--per and --burst need --rate")
    if remove and sets:
        raise click.UsageError("--remove takes no other value")

    async def work(queue: Queue) -> Limits:
        if job_type is not None:
            check_job_type(job_type)
            if remove:
                await store_admit.clear_type_limit(queue.store, job_type)
            elif sets:
                slots = None if at_once == ANY else at_once
                rule = key_rule(at_once=slots, ordered=ordered, fair=fair, limit=limit)
                await store_admit.set_type_limit(queue.store, job_type, rule)
        elif name is not None and remove:
            if not await store_admit.remove_limit(queue.store, name):
                raise unknown_limit(name, await store_admit.limit_names(queue.store))
        elif name is not None and sets:
            await store_admit.change_limit(
                queue.store,
                name,
                _whole(at_once),
                _rate_of(rate, per, burst),
                KEPT if per_key is None else per_key,
            )
        found = await observe.limits(queue.store)
        if name is not None:
            named = [] if remove else [found.limit(name)]
            return msgspec.structs.replace(found, limits=named, rules=[])
        if job_type is not None:
            rules = [rule for rule in found.rules if rule.job_type == job_type]
            return msgspec.structs.replace(found, limits=[], rules=rules)
        return found

    found = run_on_queue(dsn, work)
    if found.late:
        output.warning(f"counting took too long: {', '.join(found.late)}")
    if as_json:
        output.show_json({"limits": found.limits, "rules": found.rules})
        return
    if found.limits:
        _show_limits(found.limits, found.at)
    if found.rules:
        _show_rules(found.rules)
    if remove:
        output.note("removed")
    elif job_type is not None and not found.rules:
        output.note(f"the type {one_line(job_type)} has no rule: a key has one slot")
    elif not found.limits and not found.rules:
        output.note("there is no limit, and no type has a rule")


def _whole(value: int | str | None) -> int | Kept | None:
    if isinstance(value, int):
        return value
    return KEPT if value is None else None


def _rate_of(
    rate: int | str | None, per: timedelta | None, burst: int | None
) -> Rate | Kept | None:
    if not isinstance(rate, int):
        return KEPT if rate is None else None
    return Rate(rate, per=timedelta(seconds=1) if per is None else per, burst=burst)


def _show_limits(named: list[NamedLimit], now: datetime) -> None:
    table = output.table(
        *("LIMIT", "AT ONCE", "RATE", "TYPES", "ADMITTED", "AT WORK", "WAITING", "NEXT"),
        *("CHANGED", "BY"),
    )
    for limit in named:
        table.add_row(
            one_line(limit.name) + (" per key" if limit.per_key else ""),
            ANY if limit.at_once is None else str(limit.at_once),
            _rate(limit),
            one_line(", ".join(limit.types)),
            _count(limit.admitted),
            "?" if limit.at_work is None else f"{limit.at_work:,}",
            _count(limit.waiting),
            "" if limit.next_start_at is None else instant(limit.next_start_at),
            formatting.ago(limit.changed_at),
            one_line(limit.changed_by),
        )
    output.show(table)


def _show_rules(rules: list[TypeRule]) -> None:
    table = output.table("TYPE", "AT ONCE PER KEY", "LIMIT", "WAITING", "CHANGED", "BY")
    for rule in rules:
        table.add_row(
            one_line(rule.job_type),
            _per_key(rule),
            one_line(rule.limit or ""),
            _count(rule.waiting),
            formatting.ago(rule.changed_at),
            one_line(rule.changed_by),
        )
    output.show(table)


def _per_key(rule: TypeRule) -> str:
    if rule.fair:
        return f"fair, {rule.at_once:,} in line"
    slots = ANY if rule.at_once is None else str(rule.at_once)
    return f"{slots}, ordered" if rule.ordered else slots


def _count(count: Count | None) -> str:
    return "?" if count is None else str(count)


def _rate(limit: NamedLimit) -> str:
    if limit.rate is None or limit.per is None:
        return ANY
    return f"{limit.rate} per {typed_length(limit.per)}, burst {limit.burst}"
