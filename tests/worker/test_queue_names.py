"""A queue name stands for a set of job types: a worker can be dedicated to it."""

from __future__ import annotations

from typing import Any

import pytest

from howdah import BadInput, Job, Queue, State, SyncQueue
from howdah.observe import check_queues, queue_of_types, why_type


def register(queue: Queue) -> None:
    """Register types of the queues media, mail and default."""

    @queue.job(queue="media")
    async def resize() -> None: ...

    @queue.job(queue="media")
    async def encode() -> None: ...

    @queue.job(queue="mail")
    async def send() -> None: ...

    @queue.job
    async def other() -> None: ...


async def completed(queue: Queue) -> list[str]:
    """Return the types whose jobs have completed."""
    jobs: list[Job] = await queue.jobs(status=State.COMPLETED)
    return sorted(job.job_type for job in jobs)


@pytest.mark.parametrize(
    ("queues", "expected"),
    [
        ("media", ["encode", "resize"]),
        (["media", "mail"], ["encode", "resize", "send"]),
        (["default"], ["other"]),
        (None, ["encode", "other", "resize", "send"]),
    ],
)
async def test_a_worker_runs_the_types_of_its_queues_and_no_others(
    queue: Queue, queues: Any, expected: list[str]
) -> None:
    register(queue)
    for name in queue.handlers:
        await queue.enqueue(name)
    async with queue.worker(queues=queues) as worker:
        await worker.run_until_idle()
        assert await completed(queue) == expected
        names = await queue.store.fetch("select name from howdah.job_types order by 1")
        assert [row[0] for row in names] == expected


async def test_workers_register_the_queue_and_the_last_start_wins(dsn: str) -> None:
    async with Queue(dsn) as old, Queue(dsn) as new:

        @old.job(name="pay", queue="slow")
        async def pay() -> None: ...

        @new.job(name="pay", queue="fast")
        async def pay_fast() -> None: ...

        async with old.worker():
            assert await queue_of_types(old.store) == {"pay": "slow"}
        async with new.worker():
            assert await queue_of_types(old.store) == {"pay": "fast"}
        await new.store.fetchval(
            """select howdah.register_job_types('sql', '[{"name": "pay"}, {"name": "fax", "queue": "b"}]')"""  # noqa: E501
        )
        assert await queue_of_types(old.store) == {"fax": "b"}


async def test_an_unknown_queue_is_refused_with_similar_names(queue: Queue) -> None:
    register(queue)
    with pytest.raises(
        BadInput, match=r"queues: no job type has the queue 'medai' .did you mean 'media'.*default"
    ):
        queue.worker(queues=["medai"])
    async with queue.worker():
        with pytest.raises(BadInput, match=r"queue: no job type has the queue 'mial'.*'mail'"):
            await queue.jobs(queue="mial")
        await check_queues(queue.store, ["media", "default"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"queues": []}, "queues is empty"),
        ({"queues": 5}, "queues must be a list of names of queues, not 5"),
        ({"queues": [5]}, "a name in queues must be text"),
        ({"queues": "media", "job_types": "send"}, "give job_types or queues, not both"),
    ],
)
async def test_a_worker_refuses_bad_queues(queue: Queue, options: Any, message: str) -> None:
    register(queue)
    with pytest.raises(BadInput, match=message):
        queue.worker(**options)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "1 to 200 characters"),
        ("x" * 201, "1 to 200 characters, not 201"),
        ("a,b", "no comma"),
        (" media", "no space at its ends"),
        ("a\nb", "no control character"),
        (7, 'queue must be a name, such as "media", not 7'),
        (None, "queue must be a name"),
    ],
)
async def test_a_bad_queue_name_is_refused_when_the_type_is_registered(
    queue: Queue, name: Any, message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        queue.job(queue=name)


async def test_jobs_are_listed_by_queue(queue: Queue) -> None:
    register(queue)
    async with queue.worker():
        pass  # the types are registered
    ids = {name: (await queue.enqueue(name, delay=60)).id for name in queue.handlers}
    foreign = (await queue.enqueue("foreign", delay=60)).id  # registered by nobody

    async def listed(*queues: str) -> set[Any]:
        return {job.id for job in await queue.jobs(queue=list(queues))}

    assert await listed("media") == {ids["resize"], ids["encode"]}
    assert await listed("default") == {ids["other"], foreign}
    assert await listed("mail", "default") == {ids["send"], ids["other"], foreign}
    assert len(await listed()) == 5


async def test_why_names_the_queue_of_a_type_without_a_worker(queue: Queue) -> None:
    register(queue)
    async with queue.worker():
        pass
    await queue.enqueue("resize")
    await queue.enqueue("other")

    assert (
        "resize, of the queue media. Start one" in (await why_type(queue.store, "resize")).sentence
    )
    assert "knows the type other. Start one" in (await why_type(queue.store, "other")).sentence


def test_a_sync_queue_has_queue_names_too(dsn: str) -> None:
    with SyncQueue(dsn) as queue:

        @queue.job(queue="media")
        def resize() -> None: ...

        assert resize.handler.rules.queue == "media"
        with queue.worker(queues="media"):
            assert queue.jobs(queue="media") == []
        with pytest.raises(BadInput, match="did you mean 'media'"):
            queue.jobs(queue="medai")
