"""Schedules in Python: declared above and below a job type, set by hand, and bad input."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from howdah import BadInput, JobType, Queue, State, SyncQueue
from tests.support.waiting import eventually

HOUR = timedelta(hours=1)


async def declared(queue: Queue) -> dict[str, Any]:
    """Start a worker, and return what it has written."""
    async with queue.worker():
        pass
    return {each.name: each for each in await queue.schedules.list()}


async def test_a_schedule_is_declared_above_a_job_type(queue: Queue) -> None:
    @queue.cron("0 3 * * *", tz="Europe/Berlin", data={"day": "today"})
    @queue.cron("0 4 * * *", name="again", data={"day": "yesterday"})
    @queue.job(priority=7, key="day")
    async def report(day: str) -> None: ...

    assert isinstance(report, JobType)
    found = await declared(queue)
    assert set(found) == {"report", "again"}
    assert found["report"].data == {"day": "today"}
    assert found["report"].options == {
        "priority": 7,
        "max_attempts": 3,
        "key": "today",
        "expires_at": "infinity",
    }


async def test_a_schedule_is_declared_below_a_job_type(queue: Queue) -> None:
    @queue.job(name="reports", priority=7)
    @queue.every(HOUR)
    async def report() -> None: ...

    assert set(queue.handlers) == {"reports"}
    found = await declared(queue)
    assert set(found) == {"reports"}
    assert (found["reports"].every, found["reports"].options["priority"]) == (HOUR, 7)


async def test_a_plain_function_becomes_a_job_type(queue: Queue) -> None:
    @queue.cron("0 3 * * *")
    async def report(day: str = "today") -> None: ...

    assert set(queue.handlers) == {"report"}
    assert (await declared(queue))["report"].data == {"day": "today"}


async def test_the_rules_of_the_type_hold_for_scheduled_jobs(queue: Queue) -> None:
    @queue.every(HOUR, data={"to": 1})
    @queue.job(unique="to", on_conflict="error", expires=60, max_attempts=9)
    async def mail(to: int) -> None: ...

    await declared(queue)
    first = await queue.schedules.run_now("mail")
    second = await queue.schedules.run_now("mail")
    assert first.id == second.id, "the first job has the unique key"
    job = await first.job()
    assert (job.max_attempts, job.unique_key) == (9, "1")
    assert job.expires_at is not None


async def test_a_schedule_is_set_changed_paused_resumed_and_removed(queue: Queue) -> None:
    @queue.job
    async def mail(to: int) -> None: ...

    schedules = queue.schedules
    made = await schedules.set(
        "nightly", mail.options(priority=3).draft(to=1), cron="0  3 * * *", missed="all"
    )
    assert (made.cron, made.data, made.declared, made.state) == (
        "0 3 * * *",
        {"to": 1},
        False,
        "active",
    )
    assert made.options["priority"] == 3
    assert [each.name for each in await schedules.list()] == ["nightly"]
    changed = await schedules.set("nightly", queue.draft("mail", {"to": 2}), every=HOUR)
    assert (changed.cron, changed.every, changed.data) == (None, HOUR, {"to": 2})
    assert await schedules.pause("nightly")
    assert not await schedules.pause("nightly")
    assert (await schedules.get("nightly")).state == "paused"
    assert await schedules.resume("nightly")
    assert not await schedules.resume("nightly")
    handle = await schedules.run_now("nightly")
    assert (await handle.job()).data == {"to": 2}
    assert (await schedules.get("nightly")).last_outcome == "pending"
    assert await schedules.remove("nightly")
    assert not await schedules.remove("nightly")


async def test_upcoming_lists_the_next_firings_of_all_schedules(queue: Queue) -> None:
    queue.job(name="mail")(_nothing)
    draft = queue.draft("mail")
    await queue.schedules.set("hourly", draft, cron="0 * * * *")
    await queue.schedules.set("half", draft, cron="30 * * * *")
    await queue.schedules.set("paused", draft, cron="* * * * *")
    await queue.schedules.pause("paused")
    async with queue.worker(upkeep_every=0.05):

        async def computed() -> bool:
            return len(await queue.schedules.upcoming(4)) == 4

        await eventually(computed)
    found = await queue.schedules.upcoming(4)
    assert sorted(each.name for each in found) == ["half", "half", "hourly", "hourly"]
    times = [each.at for each in found]
    assert times == sorted(times)
    assert times[0] > datetime.now(UTC) - HOUR


async def _nothing() -> None: ...


BAD: dict[str, Callable[[Queue], object]] = {
    "wrong number of fields": lambda q: q.cron("0 3"),
    "cron must be text": lambda q: q.cron(3),  # type: ignore[arg-type]
    "did you mean 'Europe/Berlin'": lambda q: q.cron("0 3 * * *", tz="Europe/Berln"),
    "missed must be one of": lambda q: q.cron("0 3 * * *", missed="no"),  # type: ignore[arg-type]
    "overlap must be one of": lambda q: q.every(60, overlap="no"),  # type: ignore[arg-type]
    "every must be a timedelta": lambda q: q.every("1h"),  # type: ignore[arg-type]
    "at least 1 second": lambda q: q.every(0.1),
    "the name of a schedule must be text of 1 to 200": lambda q: q.every(60, name=""),
    "no control character": lambda q: q.every(60, name="a\nb"),
    "data must be a mapping": lambda q: q.every(60, data=[1]),  # type: ignore[arg-type]
    "data must be a mapping of arguments": lambda q: q.every(60, data={1: 2}),  # type: ignore[dict-item]
    "count must be between 1 and": lambda q: q.schedules.upcoming(0),
    "a schedule takes a draft, not 'mail'": lambda q: q.schedules.set("a", "mail", every=60),  # type: ignore[arg-type]
    "must have no run_at": lambda q: q.schedules.set(
        "a", q.draft("mail", run_at=datetime.now(UTC)), every=60
    ),
    "must have no delay": lambda q: q.schedules.set("a", q.draft("mail", delay=5), every=60),
    "must have no expires_at": lambda q: q.schedules.set(
        "a", q.draft("mail", expires_at=datetime(2100, 1, 1, tzinfo=UTC)), every=60
    ),
    "one of the two": lambda q: q.schedules.set("a", q.draft("mail")),
    "give cron=": lambda q: q.schedules.set("a", q.draft("mail"), cron="0 3 * * *", every=60),
    "tz is for cron": lambda q: q.schedules.set("a", q.draft("mail"), every=60, tz="Asia/Tokyo"),
    "max_attempts is 5000": lambda q: q.schedules.set(
        "a", q.draft("mail", max_attempts=5000), every=60
    ),
    "there is no schedule 'nightyl' \\(did you mean 'nightly'\\?\\); known: 'nightly'": (
        lambda q: q.schedules.pause("nightyl")
    ),
    "there is no schedule 'nightyx'": lambda q: q.schedules.resume("nightyx"),
    "there is no schedule 'other'; known": lambda q: q.schedules.run_now("other"),
    "there is no schedule 'oter'": lambda q: q.schedules.get("oter"),
}


@pytest.mark.parametrize("message", BAD)
async def test_bad_input_is_refused_and_changes_nothing(queue: Queue, message: str) -> None:
    await queue.schedules.set("nightly", queue.draft("mail"), cron="0 3 * * *")
    before = await queue.schedules.list()

    async def call() -> None:
        result: Any = BAD[message](queue)
        await result

    with pytest.raises(BadInput, match=message):
        await call()
    assert await queue.schedules.list() == before


async def test_a_payload_that_does_not_fit_is_refused_where_it_is_declared(queue: Queue) -> None:
    @queue.job
    async def mail(to: int) -> None: ...

    with pytest.raises(BadInput, match="to"):
        queue.every(HOUR)(mail)
    with pytest.raises(BadInput, match="to"):

        @queue.every(HOUR)
        async def other(to: int) -> None: ...

    assert set(queue.handlers) == {"mail"}
    queue.every(HOUR, data={"to": 1})(mail)
    with pytest.raises(BadInput, match="there is a schedule 'mail' already: give this one another"):
        queue.every(HOUR, data={"to": 2})(mail)
    queue.every(HOUR, data={"to": 2}, name="second")(mail)


async def test_a_function_is_registered_once(queue: Queue) -> None:
    job_type = queue.job(_nothing)
    with pytest.raises(BadInput, match="is registered as job type '_nothing' already"):
        queue.job(name="again")(job_type)
    stranger = Queue("postgresql://nobody@127.0.0.1:1/never-opened").job(_nothing)
    with pytest.raises(BadInput, match="registered with another queue"):
        queue.every(HOUR)(stranger)


def test_the_sync_queue_has_schedules(dsn: str) -> None:
    with SyncQueue(dsn) as queue:

        @queue.cron("0 3 * * *", name="above")
        @queue.job
        def above() -> str:
            return "above"

        @queue.job(priority=3)
        @queue.every(HOUR, name="below")
        def below() -> str:
            return "below"

        with queue.worker(processes=0):
            assert [each.name for each in queue.schedules.list()] == ["above", "below"]
            assert above.enqueue().result(timeout=30) == "above"
            handle = queue.schedules.run_now("below")
            assert handle.result(timeout=30) == "below"
            assert handle.job().priority == 3
        made = queue.schedules.set("nightly", below.draft(), cron="0 3 * * *")
        assert made.state == "active"
        assert queue.schedules.pause("nightly")
        assert queue.schedules.resume("nightly")
        assert queue.schedules.get("below").last_status is State.COMPLETED
        assert queue.schedules.remove("nightly")
