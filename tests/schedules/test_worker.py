"""Workers fire schedules: on time while idle, once per firing, as the newest code declares."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from howdah import BadInput, JobContext, Queue, Worker
from howdah.job import scheduled_for
from howdah.states import State
from tests.schedules import process_jobs
from tests.support.waiting import eventually

HOUR = timedelta(hours=1)


async def mail() -> None: ...


async def other() -> None: ...


@asynccontextmanager
async def idle_worker(queue: Queue, **options: Any) -> AsyncGenerator[Worker]:
    """A worker whose upkeep and polls are an hour apart: only a notification can wake it."""
    async with queue.worker(poll=HOUR, upkeep_every=HOUR, **options) as worker:
        await eventually(lambda: queue.store.fetchval("select howdah.has_idle_worker()"))
        yield worker


async def fired(queue: Queue) -> list[datetime | None]:
    return [scheduled_for(job.id) for job in await queue.jobs(limit=10_000)]


async def move_next(queue: Queue, wait: timedelta) -> None:
    """Let all schedules be due after a time from now."""
    await queue.store.fetch(
        "update howdah.schedules "
        "set next_firing = date_trunc('milliseconds', howdah.clock() + $1), version = version + 1",
        wait,
    )
    await queue.store.fetchval("select howdah.notify_schedules()")


async def computed(queue: Queue) -> None:
    async def all_have_a_next_firing() -> bool:
        return await queue.store.fetchval(
            "select count(*) > 0 and count(*) = count(next_firing) from howdah.schedules"
        )

    await eventually(all_have_a_next_firing)


async def test_an_idle_worker_hears_of_a_schedule_and_fires_it(queue: Queue) -> None:
    mail_type = queue.job(mail)
    async with idle_worker(queue):
        await queue.schedules.set("nightly", mail_type.draft(), every=HOUR)
        await computed(queue)
        assert await fired(queue) == []
        await move_next(queue, timedelta(seconds=0.3))
        at = await queue.store.fetchval("select next_firing from howdah.schedules")

        async def completed() -> bool:
            return (await queue.counts()).get("mail", {}).get(State.COMPLETED) == 1

        await eventually(completed)
        assert await fired(queue) == [at]
        await computed(queue)
        schedule = await queue.schedules.get("nightly")
        assert (schedule.next_firing, schedule.last_firing) == (at + HOUR, at)
        assert (schedule.last_status, schedule.last_outcome) == (State.COMPLETED, "completed")


async def test_a_schedule_made_with_sql_gets_its_next_firing_from_the_worker(queue: Queue) -> None:
    queue.job(mail)
    async with idle_worker(queue):
        await queue.store.fetchval(
            "select howdah.set_schedule('a', 'mail', p_cron => '0 3 * * *', p_tz => 'Asia/Tokyo')"
        )
        await queue.store.fetchval("select howdah.set_schedule('b', 'mail', p_cron => 'nonsense')")
        await computed(queue)
        good, bad = await queue.schedules.get("a"), await queue.schedules.get("b")
        assert good.next_firing is not None
        assert good.next_firing.hour == 18
        assert (bad.state, bad.next_firing) == ("stopped", None)
        assert "wrong number of fields" in (bad.problem or "")
    async with idle_worker(queue):  # it tries again what another one could not do
        await computed(queue)


@pytest.mark.parametrize("kind", ["async", "thread", "process"])
async def test_the_time_of_the_firing_reaches_the_handler(queue: Queue, kind: str) -> None:
    if kind == "process":
        handler = queue.job(run="process")(process_jobs.in_process.function)
    elif kind == "thread":

        @queue.job
        def in_thread(ctx: JobContext) -> str:
            return str(ctx.scheduled_for)

        handler = in_thread
    else:

        @queue.job
        async def in_loop(ctx: JobContext) -> str:
            return str(ctx.scheduled_for)

        handler = in_loop
    await queue.schedules.set("nightly", handler.draft(), cron="0 3 * * *")
    async with queue.worker(processes=1):
        handle = await queue.schedules.run_now("nightly")
        schedule = await queue.schedules.get("nightly")
        assert await handle.result(timeout=30) == str(schedule.last_firing)
        assert (await handle.job()).scheduled_for == schedule.last_firing
        plain = await handler.enqueue()
        assert await plain.result(timeout=30) == "None"


async def test_many_workers_fire_each_time_once(dsn: str) -> None:
    async with AsyncExitStack() as stack:
        queues = [await stack.enter_async_context(Queue(dsn, connections=3)) for _ in range(10)]
        first = queues[0]
        for queue in queues:
            queue.job(numbered)
            await stack.enter_async_context(queue.worker(upkeep_every=0.05))
        for n in range(20):
            draft = first.draft("numbered", {"n": n})
            await first.schedules.set(f"s{n}", draft, cron="* * * * * *", missed="all")

        async def three_times_each() -> bool:
            return all(len(times) >= 3 for times in (await times_by_number(first)).values())

        await eventually(three_times_each)
        for times in (await times_by_number(first)).values():
            assert all(b - a == timedelta(seconds=1) for a, b in pairwise(times)), times


async def numbered(n: int) -> None: ...


async def times_by_number(queue: Queue) -> dict[int, list[datetime]]:
    """Return the times that each of twenty schedules has fired for."""
    found: dict[int, list[datetime]] = {n: [] for n in range(20)}
    for job in await queue.jobs(limit=10_000):
        assert job.scheduled_for is not None
        found[job.data["n"]].append(job.scheduled_for)
    return {n: sorted(times) for n, times in found.items()}


async def test_schedules_due_at_once_are_fired_in_batches(queue: Queue) -> None:
    queue.job(mail)
    for n in range(250):
        await queue.store.fetchval(
            "select howdah.set_schedule($1, 'mail', p_every => '1 hour')", f"s{n}"
        )
    async with idle_worker(queue):
        await computed(queue)
        await move_next(queue, timedelta())

        async def all_fired() -> bool:
            return len(await fired(queue)) == 250

        await eventually(all_fired)


async def test_a_schedule_that_somebody_has_locked_is_fired_later(queue: Queue) -> None:
    mail_type = queue.job(mail)
    async with queue.worker(upkeep_every=0.05):
        await queue.schedules.set("nightly", mail_type.draft(), every=HOUR)
        await computed(queue)
        async with queue.store.acquire() as connection:
            async with connection.transaction():
                await connection.execute("select from howdah.schedules for update")
                await connection.execute("update howdah.schedules set next_firing = now()")
            await eventually(lambda: _one_fired(queue))
    assert len(await fired(queue)) == 1


async def _one_fired(queue: Queue) -> bool:
    return len(await fired(queue)) == 1


# ── what code declares ────────────────────────────────────────────────────────────────────


def declare(queue: Queue, *names: str, cron: str = "0 3 * * *", **options: Any) -> None:
    """A version of the code: two job types, and these schedules of the first."""
    job_type = queue.job(mail)
    queue.job(other)
    for name in names:
        queue.cron(cron, name=name, **options)(job_type)


async def start(dsn: str, *names: str, **options: Any) -> None:
    """Start a worker of a version of the code, and stop it again."""
    async with Queue(dsn) as version:
        declare(version, *names, **options)
        async with version.worker():
            pass


async def states(queue: Queue) -> dict[str, str]:
    return {each.name: each.state for each in await queue.schedules.list()}


async def test_declared_schedules_are_written_when_a_worker_starts(dsn: str, queue: Queue) -> None:
    await start(dsn, "a", "b", tz="Europe/Berlin", missed="all", overlap="skip")
    (a, _) = await queue.schedules.list()
    assert (a.name, a.job_type, a.cron, a.tz) == ("a", "mail", "0 3 * * *", "Europe/Berlin")
    assert (a.missed, a.overlap, a.declared) == ("all", "skip", True)
    version = await queue.store.fetchval("select version from howdah.schedules where name = 'a'")
    await start(dsn, "a", "b", tz="Europe/Berlin", missed="all", overlap="skip")
    again = await queue.store.fetchval("select version from howdah.schedules where name = 'a'")
    assert again == version, "a start of the same code changes nothing"
    await start(dsn, "a", "b")
    assert (await queue.schedules.get("a")).tz == "UTC"


async def test_a_schedule_that_vanished_from_the_code_is_orphaned(dsn: str, queue: Queue) -> None:
    await start(dsn, "a", "b")
    await start(dsn, "a")
    assert await states(queue) == {"a": "active", "b": "orphaned"}
    await move_next(queue, timedelta(days=-1))
    due = await queue.store.fetch("select name from howdah.due_schedules()")
    assert [row[0] for row in due] == ["a"]
    await start(dsn, "a", "b")  # the old version starts once more
    assert await states(queue) == {"a": "active", "b": "active"}


async def test_a_schedule_whose_function_vanished_too_is_orphaned(dsn: str, queue: Queue) -> None:
    await start(dsn, "a")
    async with Queue(dsn) as version:
        version.job(other)
        async with version.worker():
            pass
    assert await states(queue) == {"a": "orphaned"}


async def test_other_programs_and_workers_of_some_types_orphan_nothing(
    dsn: str, queue: Queue
) -> None:
    await start(dsn, "a")
    async with Queue(dsn) as program:
        program.job(name="elsewhere")(mail)
        async with program.worker():
            pass
    async with Queue(dsn) as version:
        declare(version, "a")
        async with version.worker(job_types="other"):
            pass
    assert await states(queue) == {"a": "active"}


async def test_two_versions_that_run_side_by_side_do_not_fight(dsn: str, queue: Queue) -> None:
    async with Queue(dsn) as old, Queue(dsn) as new:
        declare(old, "a", "b", cron="* * * * * *")
        declare(new, "a", "c", cron="* * * * * *", missed="all")
        async with old.worker(upkeep_every=0.05), new.worker(upkeep_every=0.05):
            versions = "select array_agg(version order by name) from howdah.schedules"
            before = await queue.store.fetchval(versions)

            async def new_ones_fire() -> bool:
                return all(
                    each.last_firing is not None and each.last_firing > each.changed_at
                    for each in await queue.schedules.list()
                    if each.name != "b"
                )

            await eventually(new_ones_fire)
            assert await states(queue) == {"a": "active", "b": "orphaned", "c": "active"}
            assert await queue.store.fetchval(versions) == before
            assert (await queue.schedules.get("a")).missed == "all"


async def test_code_touches_nothing_that_a_person_made_or_paused(
    dsn: str, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    await start(dsn, "a", "b", "c")
    await queue.schedules.pause("a")
    await queue.schedules.set("b", queue.draft("mail"), every=HOUR)
    await queue.schedules.set("by_hand", queue.draft("mail"), every=HOUR)
    with caplog.at_level(logging.WARNING, "howdah.types"):
        await start(dsn, "a", "b", missed="skip")
    assert await states(queue) == {
        "a": "paused",
        "b": "active",
        "by_hand": "active",
        "c": "orphaned",
    }
    assert (await queue.schedules.get("a")).missed == "skip"
    assert (await queue.schedules.get("b")).every == HOUR
    assert "schedule.kept" in caplog.text


async def test_a_worker_that_cannot_write_its_schedules_says_why(queue: Queue) -> None:
    """The database knows fewer time zones than this system may."""
    declare(queue, "a", tz="Europe/Berlin")
    await queue.store.fetch(
        "alter table howdah.schedules add constraint there_is_no_such_time_zone check (tz = 'UTC')"
    )
    with pytest.raises(BadInput, match="there is no such time zone"):
        await queue.worker().start()
