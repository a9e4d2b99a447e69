"""Driver of DBOS: partitioned queues, the concurrency of a queue, and its limiter."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# (this file runs in the peer's own environment, which does not have our dependencies)

from __future__ import annotations

import threading

import sqlalchemy
from dbos import DBOS, DBOSClient

from bench.admit.handler import Handler, Payload, keyed_payloads
from bench.driver import Task, drive, in_batches_of

QUEUE = "handle"
VERSION = "1"
handlers: list[Handler] = []  # of this worker


@DBOS.workflow(name="handle")
async def handle(number: int, rest: str, key: str) -> None:
    await handlers[0].handle(number)


def url(task: Task) -> str:
    return task.address.replace("postgresql://", "postgresql+psycopg://", 1)


def launch(task: Task) -> None:
    DBOS(
        config={
            "name": "bench",
            "system_database_url": task.address,
            "application_version": VERSION,
            "log_level": "ERROR",
            "sys_db_pool_size": task.options["connections"],
        }
    )
    DBOS.launch()


def limits(task: Task) -> dict[str, object]:
    slots = task.options["slots"]
    match task.options["kind"]:
        case "limit":
            return {"global_concurrency": slots}
        case "rate":
            return {"limiter": {"limit": slots, "period": 1.0}}
        case _:
            return {"partition_concurrency": slots}


def options_of(task: Task, job: Payload) -> dict[str, object]:
    partition = (
        {"queue_partition_key": job["key"]} if "partition_concurrency" in limits(task) else {}
    )
    return {
        "queue_name": QUEUE,
        "workflow_name": "handle",
        "app_version": VERSION,
        "application_name": "bench",
        **partition,
    }


def install(task: Task) -> None:
    launch(task)
    DBOS.register_queue(
        QUEUE, polling_interval_sec=task.options["polling_interval"], **limits(task)
    )
    DBOS.destroy()


def enqueue_bulk(task: Task) -> None:
    client = DBOSClient(system_database_url=task.address, application_name="bench")
    engine = sqlalchemy.create_engine(url(task))
    with task.timed():
        for batch in in_batches_of(task.options["enqueue_batch"], keyed_payloads(task)):
            with engine.begin() as connection:
                for job in batch:
                    client.enqueue_in_transaction(connection, options_of(task, job), **job)
    client.destroy()


def enqueue_single(task: Task) -> None:
    client = DBOSClient(system_database_url=task.address, application_name="bench")
    with task.timed():
        for job in keyed_payloads(task):
            client.enqueue(options_of(task, job), **job)
    client.destroy()


def work(task: Task) -> None:
    handlers.append(Handler(task))
    task.wait_for_start()
    launch(task)
    threading.Event().wait()


if __name__ == "__main__":
    drive(install, enqueue_bulk, enqueue_single, work)
