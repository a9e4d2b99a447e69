"""howdah limits: list, set and remove the named limits, and list the rules of job types."""

from __future__ import annotations

from datetime import timedelta

import click

from howdah import Queue
from howdah.admit import Rate, named_limit
from howdah.cli import formatting, options, output
from howdah.cli.options import dsn_option, json_option
from howdah.cli.run_on_queue import run_on_queue
from howdah.store import admit as store_admit
from howdah.store.admit import NamedLimit, TypeLimit
from howdah.text.printable import one_line
from howdah.text.wording import length


@click.command()
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--at-once", type=int, metavar="N", help="How many of its jobs may run at once.")
@click.option("--rate", type=int, metavar="N", help="How many may start per time.")
@click.option(
    "--per", type=options.duration, metavar="DURATION", help="The time of --rate.  [default: 1s]"
)
@click.option("--burst", type=int, metavar="N", help="How many may start at once after a pause.")
@click.option("--per-key", is_flag=True, help="Each key has the whole limit for itself.")
@click.option("--remove", is_flag=True, help="Remove it; its jobs are limited by it no longer.")
@json_option
@dsn_option
def limits(
    name: str | None,
    at_once: int | None,
    rate: int | None,
    per: timedelta | None,
    burst: int | None,
    per_key: bool,
    remove: bool,
    as_json: bool,
    dsn: str | None,
) -> None:
    """List the named limits and the rules of job types, or set or remove a limit.

    A change holds at once, for waiting jobs too. It stays until the code of a worker that starts
    says something else than before.
    """
    sets = at_once is not None or rate is not None
    if name is None and (sets or remove):
        raise click.UsageError("name the limit to set or remove")
    if rate is None and (per is not None or burst is not None):
        raise click.UsageError("--per and --burst need --rate")
    if remove and sets:
        raise click.UsageError("--remove takes no other value")

    async def work(queue: Queue) -> tuple[bool, list[NamedLimit], list[TypeLimit]]:
        found = True
        if name is not None and remove:
            found = await store_admit.remove_limit(queue.store, name)
        elif name is not None and sets:
            time = timedelta(seconds=1) if per is None else per
            given = None if rate is None else Rate(rate, per=time, burst=burst)
            limit = named_limit(name, at_once, given, per_key)
            await store_admit.set_limit(
                queue.store,
                limit.name,
                limit.at_once,
                rate,
                timedelta(seconds=1) if given is None else given.per,
                burst,
                per_key,
            )
        named = await store_admit.named_limits(queue.store)
        rules = await store_admit.type_limits(queue.store) if name is None else []
        return found, named, rules

    found, named, rules = run_on_queue(dsn, work)
    if not found:
        output.note(f"there is no limit named {one_line(name or '')}")
    if name is not None:
        named = [limit for limit in named if limit.name == name]
    if as_json:
        output.show_json(named)
        return
    if rules:
        _show_rules(rules)
    if not named:
        if found:
            output.note("there is no limit" if name is None or not remove else "removed")
        return
    table = output.table(
        "LIMIT", "AT ONCE", "RATE", "TYPES", "ADMITTED", "WAITING", "CHANGED", "BY"
    )
    for limit in named:
        table.add_row(
            one_line(limit.name) + (" per key" if limit.per_key else ""),
            "any" if limit.at_once is None else str(limit.at_once),
            _rate(limit),
            one_line(", ".join(limit.types)),
            str(limit.admitted),
            f"{limit.waiting}{'+' if limit.more else ''}",
            formatting.ago(limit.changed_at),
            one_line(limit.changed_by),
        )
    output.show(table)


def _show_rules(rules: list[TypeLimit]) -> None:
    table = output.table("TYPE", "PER KEY", "LIMIT", "CHANGED", "BY")
    for rule in rules:
        table.add_row(
            one_line(rule.job_type),
            _per_key(rule),
            one_line(rule.limit_name or "none"),
            formatting.ago(rule.changed_at),
            one_line(rule.changed_by),
        )
    output.show(table)


def _per_key(rule: TypeLimit) -> str:
    if rule.fair:
        return f"fair, {rule.at_once:,} in line"
    if rule.ordered:
        return "1, in order"
    return "any" if rule.at_once is None else f"{rule.at_once:,}"


def _rate(limit: NamedLimit) -> str:
    if limit.rate is None or limit.per is None:
        return "any"
    return f"{limit.rate} per {length(limit.per)}, burst {limit.burst}"
