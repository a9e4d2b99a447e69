"""howdah worker: run the jobs of a queue until a signal or a drain stops it.

The first SIGTERM or Ctrl-C lets running jobs end within the grace period; a second one releases
them at once. In both cases no job is lost, and the exit code is 0. Handlers cannot keep the
process alive: see forced_exit.py.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from functools import partial

import click

from howdah import Queue, Worker
from howdah.cli.forced_exit import ForcedExit
from howdah.cli.health import serve_probes
from howdah.cli.load import load_queue
from howdah.cli.log import log_json_option, log_level_option, log_to_stderr
from howdah.cli.options import dsn_option, duration, names_in, queue_names, queue_option
from howdah.client.loop import new_event_loop
from howdah.errors import BadInput
from howdah.store.dsn import find_dsn, without_password

FROM_1_TO_10000 = click.IntRange(min=1, max=10_000)


@click.command()
@click.argument("target", metavar="MODULE:QUEUE")
@click.option(
    "--concurrency",
    type=FROM_1_TO_10000,
    metavar="N",
    default=100,
    show_default=True,
    help="How many jobs run at once.",
)
@click.option(
    "--types", metavar="A,B", help="Run only these job types.  [default: all of the queue]"
)
@queue_option("Run only the job types of these queues; can be repeated.  [default: all]")
@click.option(
    "--threads",
    type=FROM_1_TO_10000,
    metavar="N",
    default=16,
    show_default=True,
    help="How many jobs run at once in threads: those of plain functions.",
)
@click.option(
    "--processes",
    type=FROM_1_TO_10000,
    metavar="N",
    help='How many processes run jobs with run="process".  [default: one per core]',
)
@click.option(
    "--batch-size",
    type=FROM_1_TO_10000,
    metavar="N",
    default=2000,
    show_default=True,
    help="How many jobs one claim takes at most.",
)
@click.option(
    "--grace",
    type=duration,
    metavar="DURATION",
    default="30s",
    show_default=True,
    help="How long running jobs may go on when the worker has to stop.",
)
@click.option(
    "--silent-after",
    type=duration,
    metavar="DURATION",
    default="15s",
    show_default=True,
    help="How long this worker may send no beat before others take its jobs.",
)
@click.option(
    "--stale-after",
    type=duration,
    metavar="DURATION",
    default="5m",
    show_default=True,
    help="How long foreign workers, which send no beats, may hold a job.",
)
@click.option(
    "--poll",
    type=duration,
    metavar="DURATION",
    default="1s",
    show_default=True,
    help="How often to check for jobs without a notification.",
)
@click.option(
    "--listen-dsn",
    metavar="DSN",
    help="A direct connection for LISTEN, if --dsn leads to a pooler such as PgBouncer.  "
    "[default: HOWDAH_LISTEN_DSN]",
)
@click.option(
    "--health-port",
    type=click.IntRange(min=0, max=65535),
    metavar="PORT",
    help="The port for GET /healthz and /readyz.  [default: none]",
)
@click.option(
    "--health-host",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="The address for --health-port; 0.0.0.0 for probes from other machines.",
)
@click.option(
    "--health-stuck-after",
    type=duration,
    metavar="DURATION",
    default="5m",
    show_default=True,
    help="How long a handler may block the event loop before /healthz answers 503.",
)
@click.option(
    "--log-jobs", is_flag=True, help="Log a line for each job that ends, also if it completed."
)
@log_level_option
@log_json_option
@dsn_option
def worker(
    target: str,
    concurrency: int,
    types: str | None,
    queues: tuple[str, ...],
    threads: int,
    processes: int | None,
    batch_size: int,
    grace: timedelta,
    silent_after: timedelta,
    stale_after: timedelta,
    poll: timedelta,
    listen_dsn: str | None,
    health_port: int | None,
    health_host: str,
    health_stuck_after: timedelta,
    log_jobs: bool,
    log_level: str,
    log_json: bool,
    dsn: str | None,
) -> None:
    """Run jobs until a signal or a drain stops it.

    MODULE:QUEUE names a module, searched for in the current directory, and the Queue in it:

    \b
        howdah worker app:queue --concurrency 20

    On SIGTERM or Ctrl-C it claims no more jobs, lets running jobs end within the grace period, and
    releases the rest. On a second signal it releases everything at once. Then the process ends,
    whatever the handlers do.
    """  # noqa: D301 - \b keeps click from rewrapping
    log_to_stderr(log_level, log_json)
    if dsn is not None:
        os.environ["HOWDAH_DSN"] = dsn  # for the Queue() in the module, which is imported next
    if listen_dsn is not None:
        os.environ["HOWDAH_LISTEN_DSN"] = listen_dsn
    queue = load_queue(target)
    if dsn is not None and queue.store.shown_dsn != _shown(dsn):
        raise BadInput(
            f"{target} has its own DSN, {queue.store.shown_dsn}: make it with Queue() to choose "
            "the database with --dsn"
        )
    if listen_dsn is not None and queue.store.shown_listen_dsn != _shown(listen_dsn):
        raise BadInput(
            f"{target} has its own DSN: make it with Queue() to choose the connection for LISTEN "
            "with --listen-dsn"
        )
    new_worker = queue.worker(
        concurrency=concurrency,
        job_types=None if types is None else names_in(types),
        queues=queue_names(queues) if queues else None,
        threads=threads,
        processes=processes,
        batch_size=batch_size,
        grace=grace,
        silent_after=silent_after,
        stale_after=stale_after,
        poll=poll,
        log_jobs=log_jobs,
    )
    health = partial(
        serve_probes,
        new_worker,
        health_host,
        health_port,
        silent_after=silent_after,
        stuck_after=health_stuck_after,
    )
    forced_exit = ForcedExit(grace.total_seconds(), new_worker.types_at_work)
    with asyncio.Runner(loop_factory=new_event_loop) as runner, forced_exit:
        runner.run(_work(queue, new_worker, forced_exit, health))


def _shown(dsn: str) -> str:
    return without_password(find_dsn(dsn) or "")


async def _work(
    queue: Queue,
    worker: Worker,
    forced_exit: ForcedExit,
    health: Callable[[], AbstractAsyncContextManager[None]],
) -> None:
    task = asyncio.current_task()
    assert task is not None
    stop: Callable[[], object] = task.cancel  # until the worker has started

    def on_signal() -> None:
        stop()

    forced_exit.listen(on_signal)
    try:
        async with health(), queue, worker:
            stop = worker.shut_down
            await worker.stopping()
            forced_exit.stop()
    except asyncio.CancelledError:
        return
