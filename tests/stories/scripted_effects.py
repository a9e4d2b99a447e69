"""Scripted effects: the part of the scripted story in which jobs are completed in transactions.

A worker writes an effect and loses its job before it completes it. Another worker does the job. The
first one completes it too late: in a right engine that ends its transaction.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import psycopg

from tests.stories.effects import INSERT

if TYPE_CHECKING:
    from tests.stories.scripted_story import Client, Lease

TRANSACTION = "scripted"


def play_effects(producer: Client, late: Client, other: Client) -> None:
    for n in range(3):
        producer.enqueue(f"effect-{n}", job_type="write")
    held = late.claim_type("write", 3)
    for lease in held[:1]:
        _write(late, lease)
        _complete(late, lease)
    for lease in held[1:2]:
        _write(late, lease)
        _lose(producer, late, lease)
        for again in other.claim_type("write"):
            _write(other, again)
            _complete(other, again)
        _complete(late, lease)
    for lease in held[2:]:
        _write(late, lease)
        producer.ask("select howdah.cancel(%s::uuid[], 'not needed')", [lease[0]])
        _complete(late, lease)


def _lose(operator: Client, worker: Client, lease: Lease) -> None:
    """Give the job of a worker to others."""
    operator.ask(
        "select howdah.retry(%s, %s::uuid[], %s::int[], '{lost}')",
        *(worker.name, [lease[0]], [lease[1]]),
    )


def _write(client: Client, lease: Lease) -> None:
    """Begin a transaction, and write the effect of a job."""
    client.ask("begin")
    client.ask("select set_config('howdah.transaction', %s, true)", TRANSACTION)
    client.ask(INSERT.format("%s", "%s", "%s"), lease[0], client.pid, lease[1])


def _complete(client: Client, lease: Lease) -> None:
    """Complete the job in the open transaction, and commit."""
    id, attempt = lease
    completion = {
        "worker_id": client.name,
        "id": id,
        "attempt": attempt,
        "transaction": TRANSACTION,
        "result": {"pid": client.pid, "attempt": attempt},
    }
    try:
        client.ask("select howdah.complete_in_transaction(%s::jsonb)", json.dumps(completion))
    except psycopg.Error as error:
        if error.sqlstate != "HW010":
            raise
    client.ask("commit")  # rolls back after an error
