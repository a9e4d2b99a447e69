"""Which database a queue uses: the documented order, and a clear error if there is none."""

from __future__ import annotations

import asyncio
import gc
from urllib.parse import urlsplit

import pytest

from howdah import BadInput, Queue, ReadOnly, SchemaMissing, Unreachable
from howdah.store.dsn import find_dsn, without_password


def test_the_order_is_argument_howdah_dsn_database_url_embedded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOWDAH_DSN", "postgresql://second")
    monkeypatch.setenv("DATABASE_URL", "postgresql://third")
    assert find_dsn("postgresql://first") == "postgresql://first"
    assert find_dsn() == "postgresql://second"
    monkeypatch.delenv("HOWDAH_DSN")
    assert find_dsn() == "postgresql://third"
    monkeypatch.delenv("DATABASE_URL")
    assert find_dsn() is None


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("postgresql+psycopg://u@h/d", "postgresql://u@h/d"),
        ("postgres+asyncpg://u@h/d", "postgres://u@h/d"),
        ("  postgresql://u@h/d\n", "postgresql://u@h/d"),
    ],
)
def test_a_dsn_in_the_form_of_other_tools_is_accepted(given: str, used: str) -> None:
    assert find_dsn(given) == used


def test_an_invalid_dsn_is_refused_without_showing_its_password() -> None:
    with pytest.raises(BadInput, match="is not a DSN: write postgresql://") as refused:
        find_dsn("mysql://user:s3cret@host/db")
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://user:s3cret@host/db",
        "postgresql://user:s3cr%40et@host:5432/db?sslmode=require",
        "postgresql://host/db?user=me&password=s3cret",
        "host=h user=u password=s3cret dbname=d",
        "postgresql://user:s3cret@a:1,b:2/db",
    ],
)
def test_a_password_is_never_shown(dsn: str) -> None:
    assert "s3cr" not in without_password(dsn)


async def test_an_unreachable_server_is_named_without_its_password() -> None:
    queue = Queue("postgresql://me:s3cret@127.0.0.1:1/db")
    with pytest.raises(Unreachable, match=r"postgresql://me:\*\*\*@127\.0\.0\.1:1/db") as refused:
        await queue.enqueue("mail")
    assert "s3cret" not in str(refused.value)


async def test_a_missing_database_raises_unreachable(dsn: str) -> None:
    queue = Queue(dsn.replace("/howdah_test_", "/no_such_"))
    with pytest.raises(Unreachable, match="does not exist"):
        await queue.enqueue("mail")


async def test_a_missing_schema_is_reported_with_the_command_to_run(empty_dsn: str) -> None:
    async with Queue(empty_dsn) as queue:
        with pytest.raises(SchemaMissing, match="run `howdah install`"):
            await queue.enqueue("mail")
        assert await queue.install()
        assert not await queue.install(), "a second install changes nothing"
        await queue.enqueue("mail")


async def test_a_read_only_database_raises_read_only(queue: Queue, dsn: str) -> None:
    name = urlsplit(dsn).path.lstrip("/")
    await queue.store.fetch(f"alter database {name} set default_transaction_read_only = on")
    async with Queue(dsn) as other:
        with pytest.raises(ReadOnly, match="takes no writes"):
            await other.enqueue("mail")
        assert await other.counts() == {}


async def test_a_queue_can_be_closed_and_used_again(dsn: str) -> None:
    queue = Queue(dsn)
    first = await queue.enqueue("mail")
    await queue.close()
    await queue.close()
    assert (await queue.get(first.id)).id == first.id
    await queue.close()


def test_a_queue_can_be_used_in_one_event_loop_after_another(dsn: str) -> None:
    """A script calls asyncio.run for every step, and closes its queue only at the end."""
    queue = Queue(dsn)

    @queue.job
    async def double(n: int) -> int:
        return n * 2

    async def step(n: int) -> int:
        handle = await double.enqueue(n=n)
        async with queue.worker():
            return await handle.result(timeout=10)

    assert [asyncio.run(step(n)) for n in (1, 2, 3)] == [2, 4, 6]
    asyncio.run(queue.close())
    gc.collect()  # an open connection would warn now
