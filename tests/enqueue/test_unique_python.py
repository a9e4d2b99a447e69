"""`unique=` from Python and from the command line."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import asyncpg
import httpx
import psycopg
import pytest

from howdah import BadInput, JobExists, Queue, State, SyncQueue
from howdah.web import dashboard
from tests.cli.support import Cli
from tests.web.serving import open_access

MINUTE = timedelta(minutes=1)


def angle_brackets(payload: dict[str, Any]) -> str:
    return f"order <{payload['order_id']}>"


async def jobs(queue: Queue) -> int:
    return await queue.store.fetchval("select count(*) from howdah.jobs")


@pytest.fixture
def pay(queue: Queue) -> Any:
    @queue.job(unique="order_id")
    async def pay(order_id: int, amount: float = 1.0) -> None: ...

    return pay


async def test_a_parameter_is_the_key(queue: Queue, pay: Any) -> None:
    first = await pay.enqueue(order_id=7)
    again = await pay.enqueue(order_id=7, amount=2.0)
    other = await pay.enqueue(order_id=8)
    assert (first.existed, again.existed, other.existed) == (False, True, False)
    assert again.id == first.id != other.id
    assert (await first.job()).unique_key == "7"
    assert (await first.job()).data == {"order_id": 7, "amount": 1.0}
    assert queue.handle(first.id).existed is False


async def test_the_payload_is_the_key(queue: Queue) -> None:
    @queue.job(unique=True)
    async def sync(a: int, b: dict[str, int]) -> None: ...

    first = await sync.enqueue(a=1, b={"x": 1, "y": 2})
    assert (await sync.enqueue(b={"y": 2, "x": 1}, a=1)).id == first.id
    assert (await queue.enqueue("sync", {"b": {"y": 2, "x": 1}, "a": 1})).id == first.id
    assert (await sync.enqueue(a=1, b={"x": 1})).id != first.id


async def test_a_function_of_the_payload_makes_the_key_or_none(queue: Queue) -> None:
    def key(payload: dict[str, Any]) -> str | None:
        return None if payload["dry"] else f"{payload['a']}:{payload['b']}"

    @queue.job(unique=key)
    async def move(a: str, b: str, dry: bool = False) -> None: ...

    first = await move.enqueue("x", "y")
    assert (await move.enqueue("x", "y")).id == first.id
    dry = [await move.enqueue("x", "y", dry=True) for _ in range(2)]
    assert len({first.id, *(handle.id for handle in dry)}) == 3
    assert (await dry[0].job()).unique_key is None


async def test_options_go_before_the_type(queue: Queue, pay: Any) -> None:
    first = await pay.enqueue(order_id=7)
    for unique in (False, True, "amount", angle_brackets):
        handle = await pay.options(unique=unique).enqueue(order_id=7)
        assert handle.id != first.id, unique
    replaced = await pay.options(on_conflict="replace").enqueue(order_id=7, amount=5.0)
    assert replaced.id == first.id
    assert (await first.job()).data["amount"] == 5.0
    moved = await pay.options(on_conflict="debounce", delay=MINUTE).enqueue(order_id=7)
    assert (await moved.job()).run_at is not None
    with pytest.raises(JobExists, match="belongs to job") as caught:
        await pay.options(on_conflict="error").enqueue(order_id=7)
    assert caught.value.id == first.id


async def test_until_started_and_for_a_time(queue: Queue, pay: Any) -> None:
    started = pay.options(unique_until="started")
    first = await started.enqueue(order_id=7)
    assert (await started.enqueue(order_id=7)).existed
    await queue.claim("pay", worker_id="w")
    assert not (await started.enqueue(order_id=7)).existed
    timed = pay.options(unique_for=MINUTE)
    second = await timed.enqueue(order_id=8)
    await second.cancel()
    assert (await timed.enqueue(order_id=8)).id == second.id
    assert await first.status() is State.CLAIMED


async def test_enqueue_many_says_which_existed(queue: Queue, pay: Any) -> None:
    @queue.job
    async def plain(order_id: int) -> None: ...

    old = await pay.enqueue(order_id=0)
    drafts = [
        draft for n in (0, 1, 2, 1) for draft in (pay.draft(order_id=n), plain.draft(order_id=n))
    ]
    handles = await queue.enqueue_many(drafts, returning="handles")
    assert [handle.existed for handle in handles[::2]] == [True, False, False, True]
    assert not any(handle.existed for handle in handles[1::2])
    assert (handles[0].id, handles[6].id) == (old.id, handles[2].id)
    assert await jobs(queue) == 1 + 2 + 4
    ids = await pay.enqueue_many([{"order_id": 1}, {"order_id": 9}], returning="ids")
    assert ids[0] == handles[2].id
    assert await pay.enqueue_many([{"order_id": 1}, {"order_id": 10}, {"order_id": 10}]) == 1
    assert [h.existed for h in await pay.enqueue_many([{"order_id": 1}], returning="handles")] == [
        True
    ]


async def test_a_long_stream_has_each_key_once(queue: Queue, pay: Any) -> None:
    count = await pay.enqueue_many({"order_id": n % 700} for n in range(3500))
    assert count == 700 == await jobs(queue)


async def test_in_the_transaction_of_the_caller(queue: Queue, pay: Any, dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        transaction = connection.transaction()
        await transaction.start()
        inside = pay.options(conn=connection)
        first = await inside.enqueue(order_id=7)
        again = await inside.enqueue(order_id=7)
        assert (first.existed, again.existed, again.id) == (False, True, first.id)
        assert await inside.enqueue_many([{"order_id": 7}, {"order_id": 8}]) == 1
        waiting = asyncio.create_task(pay.enqueue(order_id=7))
        await asyncio.wait([waiting], timeout=0.2)
        assert not waiting.done(), "it waits for the end of the first transaction"
        assert not (await pay.enqueue(order_id=9)).existed
        await transaction.rollback()
        assert not (await waiting).existed
    finally:
        await connection.close()


def test_a_sync_queue_and_a_sync_connection(dsn: str) -> None:
    with SyncQueue(dsn) as queue, psycopg.connect(dsn) as connection:

        @queue.job(unique="n", on_conflict="replace", unique_until="started")
        def pay(n: int, m: int = 0) -> None: ...

        assert not pay.enqueue(n=1).existed
        assert pay.options(conn=connection).enqueue(n=1, m=5).existed
        connection.commit()
        (job,) = queue.jobs()
        assert job.data == {"n": 1, "m": 5}
        handles = pay.enqueue_many([{"n": 1}, {"n": 2}], returning="handles")
        assert [handle.existed for handle in handles] == [True, False]
        assert queue.enqueue("other", {"a": 1}, unique=True).existed is False
        assert queue.enqueue("other", {"a": 1}, unique="a").existed is False
        assert queue.enqueue("other", {"a": 1}, unique=True).existed is True


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unique": "ordre_id"}, r"names 'ordre_id', .* mean 'order_id'\?.; it has: order_id, am"),
        ({"unique": 5}, "unique must be unique=True for the whole payload.*not 5"),
        ({"unique": []}, "unique must be unique=True"),
        ({"unique": True, "unique_until": "soon"}, 'unique_until must be one of "started", "end'),
        ({"unique": True, "unique_for": 0}, "unique_for must be longer than 0"),
        ({"unique": True, "unique_for": "1h"}, "unique_for must be a timedelta"),
        ({"unique": True, "unique_for": 1, "unique_until": "ended"}, "not both"),
        ({"unique": True, "on_conflict": "ignore"}, 'on_conflict must be one of "existing"'),
        ({"unique_for": 5}, "unique_until, unique_for and on_conflict are for unique jobs"),
        ({"on_conflict": "replace"}, "are for unique jobs"),
    ],
)  # fmt: skip
async def test_wrong_options_are_refused(queue: Queue, options: Any, message: str) -> None:
    async def pay(order_id: int, amount: float = 1.0) -> None: ...

    with pytest.raises(BadInput, match=message):
        queue.job(**options)(pay)
    plain = queue.job(name="pay")(pay)
    with pytest.raises(BadInput, match=message):
        plain.options(**options)


async def asynchronous(payload: dict[str, Any]) -> str:
    return "x"


async def test_an_async_function_is_refused(queue: Queue) -> None:
    with pytest.raises(BadInput, match="must be a plain one"):
        queue.job(unique=asynchronous)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ("payload['nothing']", "the function of the unique key of pay raised KeyError"),
        ("1 / 0", "raised ZeroDivisionError: division by zero"),
        ("''", "the unique key of pay must have 1 to 200 characters, not 0"),
        ("'x' * 10_240", "not 10,240: return a hash of a longer text"),
        ("1.5", "must be text or a whole number, or None .* not 1.5"),
        ("True", "must be text or a whole number"),
        ("['a']", "must be text or a whole number"),
        ("'a\\0b'", "must have no NUL character"),
        ("'\\ud800'", "no lone surrogate"),
    ],
)
async def test_a_bad_key_is_refused_and_nothing_is_enqueued(
    queue: Queue, made: str, message: str
) -> None:
    def key(payload: dict[str, Any]) -> object:
        return eval(made, {"payload": payload})

    @queue.job(unique=key)
    async def pay(order_id: int) -> None: ...

    with pytest.raises(BadInput, match=message):
        await pay.enqueue(order_id=1)
    with pytest.raises(BadInput, match=message):
        await pay.enqueue_many([{"order_id": 1}])
    assert await jobs(queue) == 0


async def test_a_parameter_without_a_value_is_no_key(queue: Queue) -> None:
    @queue.job(unique="ref")
    async def pay(ref: str | list[int] | None = None) -> None: ...

    assert (await pay.enqueue()).id != (await pay.enqueue()).id
    assert (await pay.enqueue(ref=[2, 1])).id == (await pay.enqueue(ref=[2, 1])).id
    with pytest.raises(BadInput, match="'ref', the unique key of pay, must have 1 to 200"):
        await pay.enqueue(ref="")
    with pytest.raises(BadInput, match="the payload of other has no 'ref'"):
        await queue.enqueue("other", {"a": 1}, unique="ref")


def test_the_command_line_takes_a_key(dsn: str) -> None:
    cli = Cli(dsn)
    first = cli.ok("enqueue", "mail", "--unique-key", "7").strip()
    again = cli("enqueue", "mail", "--unique-key", "7")
    assert again.stdout.strip() == first
    assert "existed" in again.stderr
    assert cli.json("show", first)["unique_key"] == "7"
    assert "unique key" in cli.ok("show", first)
    assert cli.json("enqueue", "mail", "--unique-key", "7") == {"id": first, "existed": True}
    replaced = cli.ok("enqueue", "mail", "n=5", "--unique-key", "7", "--on-conflict", "replace")
    assert replaced.strip() == first
    assert cli.json("show", first)["data"] == {"n": 5}
    refused = cli("enqueue", "mail", "--unique-key", "7", "--on-conflict", "error")
    assert refused.exit_code == 1
    assert first in refused.stderr
    timed = cli.ok("enqueue", "mail", "--unique-key", "8", "--unique-for", "1h").strip()
    cli.ok("cancel", timed)
    assert cli.ok("enqueue", "mail", "--unique-key", "8").strip() == timed
    for wrong in (["--unique-for", "1h"], ["--unique-key", ""], ["--unique-key", "x" * 300]):
        assert cli("enqueue", "mail", *wrong).exit_code == 2


async def test_the_dashboard_and_the_api_show_the_key_and_hide_it_where_keys_are_redacted(
    queue: Queue, pay: Any
) -> None:
    id = (await pay.options(unique=angle_brackets).enqueue(order_id=7)).id
    for redact, html, key in (((), "order &lt;7&gt;", "order <7>"), (("order_id",), "•••", "•••")):
        app = dashboard(queue, access=open_access(), redact=redact)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            page = (await client.get(f"/jobs/{id}")).text
            assert f"unique key <b>{html}</b>" in page
            answer = await client.get(f"/api/v1/jobs/{id}")
            assert answer.json()["job"]["unique_key"] == key


async def test_the_api_takes_a_key_and_says_whether_the_job_existed(queue: Queue) -> None:
    transport = httpx.ASGITransport(dashboard(queue, access=open_access()))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        page = (await client.get("/jobs")).text
        token = page.split('name="howdah-csrf-token" content="')[1].split('"')[0]
        client.headers.update({"X-Howdah-CSRF-Token": token, "Origin": "http://localhost"})

        async def post(**unique: Any) -> httpx.Response:
            sent = {"job_type": "mail", "unique": unique, "data": {"n": len(unique)}}
            return await client.post("/api/v1/jobs", json=sent)

        first = (await post(key="7")).json()
        assert first["existed"] is False
        assert (await post(key="7")).json() == {"id": first["id"], "existed": True}
        assert (await post(key="7", on_conflict="replace")).json()["existed"] is True
        assert (await queue.get(first["id"])).data == {"n": 2}
        refused = await post(key="7", on_conflict="error")
        assert refused.status_code == 409
        assert first["id"] in refused.text
        timed = (await post(key="8", until=3600)).json()["id"]
        await queue.cancel(timed)
        assert (await post(key="8", until="started")).json()["id"] == timed
        for wrong in ({"key": ""}, {"key": "x" * 201}, {"key": "7", "until": 0}, {}):
            assert (await post(**wrong)).status_code == 400
