"""howdah worker: work on the jobs of a queue until told to stop.

Comes after  load.py, which finds the queue, and howdah/worker.py, which does the work

The first SIGTERM or Ctrl-C lets running jobs end within the grace period; a second one hands
them back at once. Either way nothing is lost, and the exit code is 0. What handlers do cannot
keep the process alive: see forced_exit.py.
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
from howdah.cli.health import answering
from howdah.cli.load import load_queue
from howdah.cli.log import log_json_option, log_level_option, log_to_stderr
from howdah.cli.options import dsn_option, duration
from howdah.client.loop import new_event_loop
from howdah.errors import BadInput
from howdah.store.dsn import find_dsn, without_password

AT_LEAST_1 = click.IntRange(min=1, max=10_000)


@click.command()
@click.argument("target", metavar="MODULE:QUEUE")
@click.option(
    "--concurrency",
    type=AT_LEAST_1,
    metavar="N",
    default=100,
    show_default=True,
    help="Jobs at once.",
)
@click.option("--types", metavar="A,B", help="Only these job types.  [default: all it knows]")
@click.option(
    "--threads",
    type=AT_LEAST_1,
    metavar="N",
    default=16,
    show_default=True,
    help="Jobs at once of those that run in threads, plain functions.",
)
@click.option(
    "--processes",
    type=AT_LEAST_1,
    metavar="N",
    help='Processes for jobs with run="process".  [default: one per core]',
)
@click.option(
    "--batch-size",
    type=AT_LEAST_1,
    metavar="N",
    default=2000,
    show_default=True,
    help="Jobs per claim.",
)
@click.option(
    "--grace",
    type=duration,
    metavar="DURATION",
    default="30s",
    show_default=True,
    help="How long running jobs may take to end when the worker is told to stop.",
)
@click.option(
    "--silent-after",
    type=duration,
    metavar="DURATION",
    default="15s",
    show_default=True,
    help="How long this worker may be silent before others take its jobs.",
)
@click.option(
    "--stale-after",
    type=duration,
    metavar="DURATION",
    default="5m",
    show_default=True,
    help="How long foreign workers, which never beat, may hold a job.",
)
@click.option(
    "--poll",
    type=duration,
    metavar="DURATION",
    default="1s",
    show_default=True,
    help="How often to look for jobs nobody announced.",
)
@click.option(
    "--listen-dsn",
    metavar="DSN",
    help="Where to be told of new jobs, if a pooler such as PgBouncer answers at --dsn.  "
    "[default: HOWDAH_LISTEN_DSN]",
)
@click.option(
    "--health-port",
    type=click.IntRange(min=0, max=65535),
    metavar="PORT",
    help="Answer GET /healthz and /readyz here.  [default: nowhere]",
)
@click.option(
    "--health-host",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="At which address; 0.0.0.0 for probes from other machines.",
)
@click.option(
    "--health-stuck-after",
    type=duration,
    metavar="DURATION",
    default="5m",
    show_default=True,
    help="How long a handler may block the event loop before /healthz says so.",
)
@click.option("--log-jobs", is_flag=True, help="Log a line for each job that ends, also well.")
@log_level_option
@log_json_option
@dsn_option
def worker(
    target: str,
    concurrency: int,
    types: str | None,
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
    """Work on jobs until told to stop.

    MODULE:QUEUE is a module, found from the current directory, and the Queue in it:

    \b
        howdah worker app:queue --concurrency 20

    SIGTERM or Ctrl-C: claims no more, lets running jobs end within the grace period, hands
    the rest back. Twice: hands everything back at once. The process ends then, whatever the
    handlers do.
    """  # noqa: D301 - \b keeps click from rewrapping
    log_to_stderr(log_level, log_json)
    if dsn is not None:
        os.environ["HOWDAH_DSN"] = dsn  # for the Queue() in the module that is imported now
    if listen_dsn is not None:
        os.environ["HOWDAH_LISTEN_DSN"] = listen_dsn
    queue = load_queue(target)
    if dsn is not None and queue.store.shown_dsn != _shown(dsn):
        raise BadInput(
            f"{target} is made with a DSN of its own, {queue.store.shown_dsn}; "
            "make it with Queue() to choose the database with --dsn"
        )
    if listen_dsn is not None and queue.store.shown_listen_dsn != _shown(listen_dsn):
        raise BadInput(
            f"{target} is made with a DSN of its own; "
            "make it with Queue() to choose where to listen with --listen-dsn"
        )
    made = queue.worker(
        concurrency=concurrency,
        job_types=None if types is None else [name.strip() for name in types.split(",")],
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
        answering,
        made,
        health_host,
        health_port,
        silent_after=silent_after,
        stuck_after=health_stuck_after,
    )
    end = ForcedExit(grace.total_seconds(), made.types_at_work)
    with asyncio.Runner(loop_factory=new_event_loop) as runner, end:
        runner.run(_work(queue, made, end, health))


def _shown(dsn: str) -> str:
    return without_password(find_dsn(dsn) or "")


async def _work(
    queue: Queue,
    made: Worker,
    end: ForcedExit,
    health: Callable[[], AbstractAsyncContextManager[None]],
) -> None:
    task = asyncio.current_task()
    assert task is not None
    stop: Callable[[], object] = task.cancel  # nothing to drain before the worker has started

    def told() -> None:
        stop()

    end.listen(told)
    try:
        async with health(), queue, made:
            stop = made.shut_down
            await made.stopping()
            end.stop()
    except asyncio.CancelledError:
        return
