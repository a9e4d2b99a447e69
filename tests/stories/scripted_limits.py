"""Scripted limits: the part of the scripted story with keys, limits, unique keys and expiry.

Each step uses one rule, and would break its promise if the engine did not keep it. No step depends
on what the engine answers, so a broken engine plays it to its end too.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tests.stories.history import OK
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from tests.stories.scripted_story import Client

RULES = """
    select howdah.set_limit('api', 1), howdah.set_limit('rated', null, 1, '1 hour', 2);
    select howdah.set_type_limit('of_tenant', 2), howdah.set_type_limit('book', 1, true),
           howdah.set_type_limit('call', null, false, 'api'),
           howdah.set_type_limit('rated', null, false, 'rated');
"""


def play_limits(producer: Client, anna: Client, bert: Client, upkeep: Client) -> None:
    producer.connection.execute(RULES)
    for job_type, key, jobs in (("of_tenant", "a", 3), ("book", "a", 3), ("call", None, 2)):
        for n in range(jobs):
            producer.enqueue(f"{job_type}-{n}", job_type=job_type, key=key)
        _take_turns(job_type, jobs, anna, bert, upkeep)
    _start_as_the_rate_allows(producer, anna, upkeep)
    _enqueue_twice(producer, anna)
    _expire(producer, anna, upkeep)


def _take_turns(job_type: str, jobs: int, anna: Client, bert: Client, upkeep: Client) -> None:
    """Two workers claim all they can get, at the same time."""
    for _ in range(jobs):
        _admit(upkeep)
        held = anna.claim_type(job_type, 1)
        runs = anna.begin(held)
        _admit(upkeep)
        others = bert.claim_type(job_type, 10)
        at_once = bert.begin(others)
        anna.end(runs)
        bert.end(at_once)
        anna.complete(held)
        bert.complete(others)


def _start_as_the_rate_allows(producer: Client, anna: Client, upkeep: Client) -> None:
    """Two may start at once, and the third after an hour: it is cancelled."""
    for n in range(3):
        producer.enqueue(f"rated-{n}", job_type="rated")
    for _ in range(3):
        _admit(upkeep)
        anna.do(anna.claim_type("rated"))
    producer.ask(
        "select howdah.cancel(array(select id from howdah.jobs where job_type = 'rated' "
        "and status = 'pending'), 'not needed')"
    )


def _enqueue_twice(producer: Client, anna: Client) -> None:
    for n in range(2):
        asked = producer.log.ask("enqueue", tokens=[f"once-{n}"])
        ((id,),) = producer.ask(
            "select howdah.enqueue('once', %s, p_unique_key => 'order-7')::text",
            f'{{"token": "once-{n}"}}',
        )
        token = "select data ->> 'token' = %s from howdah.jobs where id = %s"
        existed = {} if producer.ask(token, f"once-{n}", id) == [(True,)] else {f"once-{n}": id}
        producer.log.answer(asked, OK, existed=existed)
    anna.do(anna.claim_type("once", 2))


def _expire(producer: Client, anna: Client, upkeep: Client) -> None:
    soon = datetime.now(UTC) + timedelta(milliseconds=30)
    producer.enqueue("brief", job_type="brief", expires_at=soon.isoformat())
    wait_until(
        lambda: producer.ask("select 1 where clock_timestamp() > %s", soon),
        "the job has expired",
        pause=0.002,
    )
    anna.do(anna.claim_type("brief"))
    upkeep.ask("select howdah.expire()")


def _admit(client: Client) -> None:
    client.ask("select howdah.admit()")
