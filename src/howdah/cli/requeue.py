"""howdah requeue: run failed or cancelled jobs again."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import click

from howdah import Queue
from howdah.cli import formatting, output
from howdah.cli.options import dsn_option, job_id, json_option
from howdah.cli.results import Results, show_results
from howdah.cli.run_on_queue import run_on_queue
from howdah.client.matching import act_on_matching
from howdah.observe import Filter
from howdah.states import State


@click.command()
@click.argument("ids", metavar="[ID]...", type=job_id, nargs=-1)
@click.option(
    "--attempts",
    type=click.IntRange(min=1, max=1_000_000),
    metavar="N",
    default=1,
    show_default=True,
    help="How many more attempts each job gets.",
)
@click.option("--failed", is_flag=True, help="Requeue all failed jobs, instead of IDs.")
@click.option(
    "--type",
    "types",
    metavar="TYPE",
    multiple=True,
    help="With --failed: only jobs of this type; can be repeated.",
)
@click.option("--yes", is_flag=True, help="With --failed: do not ask.")
@json_option
@dsn_option
def requeue(
    ids: tuple[UUID, ...],
    attempts: int,
    failed: bool,
    types: tuple[str, ...],
    yes: bool,
    as_json: bool,
    dsn: str | None,
) -> None:
    """Run failed or cancelled jobs again.

    They keep their payload, their events and their errors. Exit code 1 if a job was neither failed
    nor cancelled, 3 if a job does not exist.
    """
    if bool(ids) == failed:
        raise click.UsageError("name the jobs, or use --failed for all failed jobs, not both")
    if types and not failed:
        raise click.UsageError("--type needs --failed: add it, or leave --type out")
    if failed:
        _all_failed(dsn, types, attempts, yes, as_json)
        return

    async def work(queue: Queue) -> Results:
        return await Results.collect(queue, ids, await queue.requeue(ids, attempts))

    show_results(run_on_queue(dsn, work), "requeued", as_json)


def _all_failed(
    dsn: str | None, types: Sequence[str], attempts: int, yes: bool, as_json: bool
) -> None:
    async def count(queue: Queue) -> int:
        counts = await queue.counts()
        return sum(
            states.get(State.FAILED, 0)
            for job_type, states in counts.items()
            if not types or job_type in types
        )

    async def work(queue: Queue) -> int:
        return await requeue_failed(queue, types, attempts)

    if not yes:
        failed = run_on_queue(dsn, count)
        if failed and not click.confirm(f"Requeue {formatting.jobs(failed)}?", err=True):
            raise click.Abort
    requeued = run_on_queue(dsn, work)
    if as_json:
        output.show_json({"requeued": requeued})
    else:
        output.show(f"{formatting.jobs(requeued)} requeued")


async def requeue_failed(queue: Queue, types: Sequence[str], attempts: int) -> int:
    """Requeue all failed jobs, each once, even if it fails again meanwhile."""

    async def act(ids: list[UUID]) -> set[UUID]:
        return await queue.requeue(ids, attempts)

    wanted = Filter(status=(State.FAILED,), job_type=tuple(types))
    return sum([done.moved async for done in act_on_matching(queue.store, wanted, act)])
