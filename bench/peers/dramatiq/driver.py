"""Driver of Dramatiq."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# (this file runs in the peer's own environment, which does not have our dependencies)

from __future__ import annotations

import os
import threading
import time

os.environ["dramatiq_queue_prefetch"] = "1000"  # noqa: SIM112 - its own name, read at import

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.worker import Worker

from bench.call_counter import CALLS_FOLDER, CallCounter
from bench.driver import Task, drive

WORKER_TIMEOUT = 20  # milliseconds

calls = CallCounter(os.environ[CALLS_FOLDER])


def actors_for(task: Task) -> tuple[dramatiq.Broker, dramatiq.Actor, dramatiq.Actor]:
    broker = RedisBroker(url=f"unix://{task.address}")
    dramatiq.set_broker(broker)

    def handle(number: int, rest: str) -> None:
        calls.handled(number)
        if task.sleep:
            time.sleep(task.sleep)

    def pickup(number: int, rest: str) -> None:
        calls.picked_up(number)

    return broker, dramatiq.actor(handle), dramatiq.actor(pickup)


def install(task: Task) -> None:
    """Nothing to do: Redis has no tables."""


def enqueue(task: Task) -> None:
    broker, handle, _ = actors_for(task)
    payloads = task.payloads()
    broker.client.ping()
    with task.timed():
        for payload in payloads:
            handle.send(**payload)


def enqueue_bulk(task: Task) -> None:
    enqueue(task)


def enqueue_single(task: Task) -> None:
    enqueue(task)


def work(task: Task) -> None:
    broker, _, _ = actors_for(task)
    worker = Worker(broker, worker_timeout=WORKER_TIMEOUT, worker_threads=task.options["threads"])
    task.wait_for_start()
    worker.start()
    threading.Event().wait()


def send(task: Task) -> None:
    broker, _, pickup = actors_for(task)
    broker.client.ping()
    task.wait_for_start()
    for payload in task.timestamped_payloads():
        pickup.send(**payload)


if __name__ == "__main__":
    drive(install, enqueue_bulk, enqueue_single, work, send)
