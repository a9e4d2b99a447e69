"""howdah requeue: give failed or cancelled jobs another chance."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import click

from howdah import Queue
from howdah.cli import ground, words
from howdah.cli.moved import Moved, show_moved
from howdah.cli.options import dsn_option, job_id, json_option
from howdah.states import State

PAGE = 500


@click.command()
@click.argument("ids", metavar="[ID]...", type=job_id, nargs=-1)
@click.option(
    "--attempts",
    type=click.IntRange(min=1, max=1_000_000),
    metavar="N",
    default=1,
    show_default=True,
    help="How many more attempts each of them gets.",
)
@click.option("--failed", is_flag=True, help="All failed jobs, instead of naming them.")
@click.option("--type", "types", metavar="TYPE", multiple=True, help="With --failed: only these.")
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
    """Give failed or cancelled jobs another chance.

    They keep their payload, their events and the errors they had. Exit code 1 when one of
    them was neither failed nor cancelled, 3 when there is no such job.
    """
    if bool(ids) == failed:
        raise click.UsageError("name the jobs, or say --failed for all failed ones")
    if types and not failed:
        raise click.UsageError("--type goes with --failed")
    if failed:
        _all_failed(dsn, types, attempts, yes, as_json)
        return

    async def work(queue: Queue) -> Moved:
        return await Moved.of(queue, ids, await queue.requeue(ids, attempts))

    show_moved(ground.on_queue(dsn, work), "requeued", as_json)


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
        found = ground.on_queue(dsn, count)
        if found and not click.confirm(f"Requeue {words.jobs(found)}?", err=True):
            raise click.Abort
    moved = ground.on_queue(dsn, work)
    if as_json:
        ground.show_json({"requeued": moved})
    else:
        ground.show(f"{words.jobs(moved)} requeued")


async def requeue_failed(queue: Queue, types: Sequence[str], attempts: int) -> int:
    """Requeue page by page, newest first: each job once, however fast it fails again."""
    moved, before = 0, None
    while page := await queue.jobs(status=State.FAILED, job_type=types, before=before, limit=PAGE):
        moved += len(await queue.requeue([job.id for job in page], attempts))
        before = page[-1].id
    return moved
