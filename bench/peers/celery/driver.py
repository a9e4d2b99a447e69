"""Driver of Celery."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# (this file runs in the peer's own environment, which does not have our dependencies)

from __future__ import annotations

import os
import time

from celery import Celery

from bench.call_counter import CALLS_FOLDER, CallCounter
from bench.driver import Task, drive

calls = CallCounter(os.environ[CALLS_FOLDER])


def app_for(task: Task) -> Celery:
    app = Celery("bench", broker=f"redis+socket://{task.address}")
    app.conf.update(
        task_ignore_result=True,
        task_serializer="json",
        worker_prefetch_multiplier=1000,
        worker_hijack_root_logger=False,
        broker_connection_retry_on_startup=True,
    )

    @app.task(name="handle")
    def handle(number: int, rest: str) -> None:
        calls.handled(number)
        if task.sleep:
            time.sleep(task.sleep)

    @app.task(name="pickup")
    def pickup(number: int, rest: str) -> None:
        calls.picked_up(number)

    app.finalize()
    return app


def install(task: Task) -> None:
    """Nothing to do: Redis has no tables."""


def enqueue(task: Task) -> None:
    app = app_for(task)
    handle, payloads = app.tasks["handle"], task.payloads()
    with app.producer_pool.acquire(block=True) as producer:
        producer.connection.ensure_connection()
        with task.timed():
            for payload in payloads:
                handle.apply_async(kwargs=payload, producer=producer)


def enqueue_bulk(task: Task) -> None:
    enqueue(task)


def enqueue_single(task: Task) -> None:
    enqueue(task)


def work(task: Task) -> None:
    app = app_for(task)
    task.wait_for_start()
    app.worker_main(
        [
            *("worker", "--loglevel", "ERROR", "--hostname", f"{os.getpid()}@bench"),
            *("--pool", task.options["pool"], "--concurrency", str(task.options["concurrency"])),
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        ]
    )


def send(task: Task) -> None:
    app = app_for(task)
    with app.producer_pool.acquire(block=True) as producer:
        producer.connection.ensure_connection()
        task.wait_for_start()
        for payload in task.timestamped_payloads():
            app.tasks["pickup"].apply_async(kwargs=payload, producer=producer)


if __name__ == "__main__":
    drive(install, enqueue_bulk, enqueue_single, work, send)
