"""Every public parameter refuses invalid values with a BadInput that names it.

The row of a parameter names the values that it accepts. No other error of Python or of the
database may come through: values are checked before anything is sent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from howdah import BadInput, Lease, Queue

pytestmark = pytest.mark.slow

Call = Callable[[Any, Any], Any]

INVALID: dict[str, Any] = {
    "None": None,
    "empty": "",
    "text": "5m",
    "a list": [],
    "True": True,
    "nan": math.nan,
    "inf": math.inf,
    "minus": -1,
    "zero": 0,
    "huge": 10**400,
    "an object": object(),
    "a class": int,
    "bytes": b"x",
    "a dict": {"a": 1},
    "NUL": "a\0b",
}

# a call by its parameter, and which of the values it accepts
LENGTHS: dict[str, tuple[Call, set[str]]] = {
    "call_timeout": (lambda q, v: Queue("postgresql://nowhere", call_timeout=v), set()),
    "timeout in job": (lambda q, v: q.job(timeout=v), {"None"}),
    "backoff": (lambda q, v: q.job(backoff=v), {"None", "zero"}),
    "delay in draft": (lambda q, v: q.draft("mail", delay=v), {"None", "zero"}),
    "delay in options": (lambda q, v: q.mail.options(delay=v), {"None", "zero"}),
    "delay in fail": (lambda q, v: q.fail(q.lease, "no", delay=v), {"zero"}),
    "poll": (lambda q, v: q.worker(poll=v), set()),
    "grace": (lambda q, v: q.worker(grace=v), {"zero"}),
    "silent_after": (lambda q, v: q.worker(silent_after=v), set()),
    "stale_after": (lambda q, v: q.worker(stale_after=v), set()),
    "upkeep_every": (lambda q, v: q.worker(upkeep_every=v), set()),
    "timeout in result": (lambda q, v: q.handle(uuid4()).result(v), {"None", "zero"}),
    "timeout in recover": (lambda q, v: q.recover_stale_jobs(v), set()),
    "keep": (lambda q, v: q.prune(v), {"None", "zero"}),
}
NUMBERS: dict[str, tuple[Call, set[str]]] = {
    "priority": (lambda q, v: q.draft("mail", priority=v), {"None", "zero", "minus"}),
    "priority in job": (lambda q, v: q.job(priority=v), {"zero", "minus"}),
    "priority in options": (
        lambda q, v: q.mail.options(priority=v),
        {"None", "zero", "minus"},
    ),
    "max_attempts": (lambda q, v: q.draft("mail", max_attempts=v), {"None"}),
    "concurrency": (lambda q, v: q.worker(concurrency=v), set()),
    "batch_size": (lambda q, v: q.worker(batch_size=v), set()),
    "processes": (lambda q, v: q.worker(processes=v), {"None", "zero"}),
    "batch_size in claim": (lambda q, v: q.claim(["mail"], v, worker_id="w"), set()),
    "limit": (lambda q, v: q.jobs(limit=v), set()),
    "attempts": (lambda q, v: q.requeue([uuid4()], v), set()),
    "attempts in handle": (lambda q, v: q.handle(uuid4()).requeue(v), set()),
}
TEXTS: dict[str, tuple[Call, set[str]]] = {
    "dsn": (lambda q, v: Queue(v), {"None", "empty"}),
    "listen_dsn": (
        lambda q, v: Queue("postgresql://nowhere", listen_dsn=v),
        {"None", "empty"},
    ),
    "job_type": (lambda q, v: q.draft(v), {"text"}),
    "name": (lambda q, v: q.job(name=v)(work), {"None", "text"}),
    "worker_id in claim": (lambda q, v: q.claim(["mail"], worker_id=v), {"text"}),
    "worker_id": (lambda q, v: q.worker(worker_id=v), {"None", "empty", "text"}),
    "worker_id in jobs": (lambda q, v: q.jobs(worker_id=v), {"None", "text"}),
    "job_type in pause": (lambda q, v: q.pause(v), {"text"}),
    "job_type in resume": (lambda q, v: q.resume(v), {"text"}),
}
OTHERS: dict[str, tuple[Call, set[str]]] = {
    "function": (lambda q, v: q.job(v), {"None"}),
    "retry_on": (lambda q, v: q.job(retry_on=v), {"a list"}),
    "fail_on": (lambda q, v: q.job(fail_on=v), {"a list"}),
    "run": (lambda q, v: q.job(run=v)(work), {"None"}),
    "data": (lambda q, v: q.draft("mail", v), {"None", "a dict"}),
    "run_at": (lambda q, v: q.draft("mail", run_at=v), {"None"}),
    "conn": (lambda q, v: q.enqueue("other", {}, conn=v), {"None"}),
    "pgbouncer": (
        lambda q, v: Queue("postgresql://nowhere", pgbouncer=v),
        {"None", "True"},
    ),
    "job_types": (lambda q, v: q.worker(job_types=v), {"None"}),
    "job_types in claim": (lambda q, v: q.claim(v, worker_id="w"), {"text", "a list"}),
    "job_type in jobs": (lambda q, v: q.jobs(job_type=v), {"text", "a list"}),
    "status": (lambda q, v: q.jobs(status=v), {"a list"}),
    "before": (lambda q, v: q.jobs(before=v), {"None"}),
    "id": (lambda q, v: q.handle(v), set()),
    "id in get": (lambda q, v: q.get(v), set()),
    "id in why": (lambda q, v: q.why(v), set()),
    "ids in cancel": (lambda q, v: q.cancel(v), {"a list"}),
    "ids in requeue": (lambda q, v: q.requeue(v), {"a list"}),
    "job in complete": (lambda q, v: q.complete(v), set()),
    "job in fail": (lambda q, v: q.fail(v, "no"), set()),
    "jobs in release": (lambda q, v: q.release(v), {"a list"}),
    "jobs in complete_many": (lambda q, v: q.complete_many(v), {"a list"}),
    "results": (lambda q, v: q.complete_many([q.lease], v), {"None"}),
    "errors": (lambda q, v: q.fail_many([q.lease], v), set()),
    "retry": (lambda q, v: q.fail(q.lease, "no", retry=v), {"True"}),
    "drafts": (lambda q, v: q.enqueue_many(v), {"a list"}),
    "drafts of a type": (lambda q, v: q.mail.enqueue_many(v), {"a list"}),
}
PARAMETERS = {**LENGTHS, **NUMBERS, **TEXTS, **OTHERS}


async def work() -> None: ...


class Surface:
    """A queue with one job type, and a lease without a job."""

    lease = Lease(uuid4(), "w", 1)

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        queue.job(name="mail")(work)
        self.mail: Any = queue.job(name="mail2")(work)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


async def await_call(call: Call, surface: Any, value: Any) -> None:
    result = call(surface, value)
    if hasattr(result, "__await__"):
        await result


async def test_a_single_value_is_accepted_instead_of_a_list(queue: Queue) -> None:
    @queue.job
    async def resize(n: int) -> None: ...

    first, second = await resize.enqueue(n=1), await resize.enqueue(n=2)
    assert await queue.cancel(first.id) == {first.id}
    assert await queue.cancel(str(first.id)) == set()
    assert await queue.requeue(first.id) == {first.id}
    jobs = await queue.claim("resize", worker_id="w")
    assert {job.id for job in jobs} == {first.id, second.id}
    assert await queue.release(jobs[0]) == {jobs[0].id}
    assert await queue.complete_many(jobs[1]) == {jobs[1].id}
    with pytest.raises(BadInput, match=r"a job id must be a UUID, not <Handle .*: give its \.id"):
        await queue.cancel(first)  # pyright: ignore[reportArgumentType]
    worker = queue.worker(job_types="resize", poll=0.5, grace=5, silent_after=20, stale_after=60)
    async with worker:
        await worker.run_until_idle()
    assert await queue.recover_stale_jobs(60) == []
    await queue.prune(3600)


async def test_an_error_of_any_kind_is_kept_as_text(queue: Queue) -> None:
    handle = await queue.enqueue("mail")
    (job,) = await queue.claim("mail", worker_id="w")
    await queue.fail(job, ValueError("bad"), retry=False)
    assert (await handle.job()).last_error == "ValueError: bad"
    other = await queue.enqueue("mail")
    await queue.cancel(other.id, {"by": "me"})
    assert (await other.job()).last_error == '{"by":"me"}'


@pytest.mark.parametrize("parameter", PARAMETERS)
async def test_an_invalid_value_is_refused_by_name(queue: Queue, parameter: str) -> None:
    call, accepted = PARAMETERS[parameter]
    word = parameter.split()[0]
    for name, value in INVALID.items():
        if name in accepted:
            continue
        fresh = Queue("postgresql://nowhere")
        fresh.store = queue.store
        surface = Surface(fresh)
        with pytest.raises(BadInput) as caught:
            await await_call(call, surface, value)
        message = str(caught.value)
        assert len(message) < 800, (name, message)
        shared = {"job_type": "job type", "name": "job type", "id": "id", "ids": "id"}
        expected = {word, shared.get(word, word), word.rstrip("s"), *ALSO.get(word, ())}
        assert any(text in message for text in expected), (parameter, name, message)


ALSO = {
    "function": ("@queue.job", "an object", "a class"),
    "data": ("payload",),
    "dsn": ("DSN", "port", "nothing"),
    "listen_dsn": ("DSN",),
    "drafts": ("enqueue_many",),
    "before": ("job id",),
    "job_types": ("job types",),
    "retry": ("retry",),
}
