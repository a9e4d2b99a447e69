"""Any string is a plain value, on every path to SQL.

Every string that reaches a statement is sent through its real entry: Python's verbs, the caller's
connections, the SQL functions, plain SQL, the command line. Afterwards the canary table exists, and
the string is stored exactly.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator
from typing import Any, LiteralString, cast
from uuid import uuid4

import psycopg
import pytest

from howdah import BadInput, JobContext, Queue
from howdah.client.sync import SyncQueue
from howdah.states import State
from howdah.store import engine_files
from tests.cli.support import Cli, invoke
from tests.enqueue.transaction_drivers import ASYNC_OR_BLOCKING, AsyncDriver
from tests.security.hostile_strings import CANARY, STRINGS
from tests.support import Database
from tests.support.databases import Databases

hostile = pytest.mark.parametrize("text", STRINGS)


@pytest.fixture(scope="module")
def canary_dsn(databases: Databases) -> Generator[str]:
    """A database with a canary table, which an injected statement would drop."""
    dsn = databases.create()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"create table public.{CANARY} (alive bool)".encode())
        connection.execute(f"insert into public.{CANARY} values (true)".encode())
    yield dsn
    databases.drop(dsn)


@pytest.fixture(autouse=True)
def canary(canary_dsn: str) -> Generator[None]:
    yield
    with psycopg.connect(canary_dsn, autocommit=True) as connection:
        alive = connection.execute(f"select alive from public.{CANARY}".encode()).fetchone()
    assert alive == (True,), "a string was run as SQL"


@pytest.fixture
def plain(canary_dsn: str) -> Generator[Database]:
    database = Database(canary_dsn)
    yield database
    database.close()


def is_valid_name(text: str) -> bool:
    """Whether a job type may have this name: control characters are refused."""
    return not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in text)


@hostile
async def test_every_string_of_a_job_in_python(canary_dsn: str, text: str) -> None:
    """Type, payload, keys, stage, kind, event, result, worker id."""
    name = f"{text if is_valid_name(text) else 'ordinary'}{uuid4()}"
    async with Queue(canary_dsn) as queue:

        @queue.job(name=name)
        async def live(ctx: JobContext, value: Any) -> Any:
            await ctx.progress(50, text)
            await ctx.emit(text, {text: text})
            return {text: [text]}

        handle = await live.enqueue(value={text: text})
        worker_id = f"{text}{uuid4()}"
        async with queue.worker(worker_id=worker_id) as worker:
            await worker.run_until_idle()
            assert worker_id in {each.id for each in await queue.workers()}
        job = await handle.job()
        assert job.status is State.COMPLETED, job.last_error
        assert job.job_type == name
        assert job.data == {"value": {text: text}}
        assert job.current_stage == text
        assert job.result == {text: [text]}
        assert job.worker_id == worker_id
        (event,) = [e async for e in handle.events() if getattr(e, "kind", None) == text]
        assert getattr(event, "data", None) == {text: text}
        listed = await queue.jobs(job_type=name, worker_id=worker_id, status="completed")
        assert [job.id for job in listed] == [handle.id]
        assert name in await queue.counts()


@hostile
async def test_every_string_of_the_low_level_verbs(canary_dsn: str, text: str) -> None:
    """Worker id, error, reason of a cancellation, filters."""
    async with Queue(canary_dsn) as queue:
        job_type = f"{text if is_valid_name(text) else 'low'}{uuid4()}"
        worker_id = f"{text}{uuid4()}"
        first = await queue.enqueue(job_type, max_attempts=1)
        second = await queue.enqueue(job_type)
        claimed = await queue.claim([job_type], 10, worker_id=worker_id)
        jobs = {job.id: job for job in claimed}
        await queue.fail(jobs[first.id], text)
        assert (await first.job()).last_error == text
        assert (await first.job()).errors[0]["error"] == text
        await queue.cancel([second.id], text)
        assert (await second.job()).last_error == text
        assert await queue.jobs(job_type=[text, text], worker_id=text) == []
        for call in (
            lambda: queue.jobs(status=text),
            lambda: queue.jobs(before=text),
            lambda: queue.get(text),
        ):
            with pytest.raises(BadInput):
                await call()


@pytest.mark.parametrize("driver", ASYNC_OR_BLOCKING.values(), ids=list(ASYNC_OR_BLOCKING))
async def test_every_caller_connection(canary_dsn: str, driver: AsyncDriver) -> None:
    async with Queue(canary_dsn) as queue, driver(canary_dsn) as tx:
        texts = [text for text in STRINGS if is_valid_name(text)]
        drafts = {text: queue.draft(text, {text: text}) for text in texts}
        ones = {text: await queue.enqueue(text, {text: text}, conn=tx.conn) for text in texts}
        assert await queue.enqueue_many(drafts.values(), conn=tx.conn) == len(texts)
        await tx.commit()
        for text in texts:
            for id in (ones[text].id, drafts[text].id):
                job = await queue.get(id)
                assert (job.job_type, job.data) == (text, {text: text})


@hostile
async def test_a_stream_of_drafts(canary_dsn: str, text: str) -> None:
    """COPY has its own quotes and escapes."""
    async with Queue(canary_dsn) as queue:
        more = f"{text}\\.\\N\t\n"
        name = text if is_valid_name(text) else "ordinary"
        draft = queue.draft(name, {"value": more})
        assert await queue.enqueue_many([draft]) == 1
        assert (await queue.get(draft.id)).data == {"value": more}


FOR_THE_VALUE = ("22", "23", "HW")


def refusal(session: Database, sql: str, *values: object) -> str | None:
    """Send a statement and roll it back; returns the class of its SQLSTATE if it is refused."""
    with session.rolled_back():
        try:
            with session.transaction():
                session.execute(sql, *values)
        except psycopg.Error as error:
            return (error.sqlstate or "none")[:2]
    return None


@hostile
def test_every_text_of_every_function_of_the_engine(plain: Database, text: str) -> None:
    """All functions of the catalog, with this text as every text argument."""
    functions = plain.rows(
        "select case prokind when 'p' then 'call' else 'select' end as word, proname as name, "
        "proargtypes::regtype[]::text[] as types from pg_proc "
        "where pronamespace = 'howdah'::regnamespace and prorettype <> 'trigger'::regtype"
    )
    text_values = {
        "text": "%s::text",
        "text[]": "array[%s]::text[]",
        "jsonb": "to_jsonb(%s::text)",
        "jsonb[]": "array[to_jsonb(%s::text)]",
    }
    called = 0
    for function in functions:
        types: list[str] = function["types"]
        if not any(type in text_values for type in types):
            continue
        called += 1
        arguments = ", ".join(text_values.get(type, f"null::{type}") for type in types)
        values = [text] * sum(type in text_values for type in types)
        # class 42 is a syntax error, or an unknown name from the text
        sql = f"{function['word']} howdah.{function['name']}({arguments})"
        assert refusal(plain, sql, *values) in (None, *FOR_THE_VALUE), function["name"]
    assert called > 15


@hostile
def test_every_text_column_by_plain_sql(plain: Database, text: str) -> None:
    name = f"{text if is_valid_name(text) else 'ordinary'}{uuid4()}"
    data = json.dumps({text: text})
    plain.plain("INSERT INTO jobs (job_type, data) VALUES ($1, $2)", name, data)
    (claim,) = plain.claim(name, worker=text)
    plain.plain(
        "UPDATE jobs SET current_stage = $2, last_error = $2, status = 'failed' WHERE id = $1",
        claim.id,
        text,
    )
    job = plain.job(claim.id)
    assert job["job_type"] == name
    assert (job["worker_id"], job["current_stage"], job["last_error"]) == (text, text, text)
    assert job["status"] == "failed"
    plain.upkeep()
    assert plain.depth() == plain.counted()


@hostile
def test_a_silent_worker_with_a_hostile_name_is_recovered(plain: Database, text: str) -> None:
    """Its name becomes part of an error, which SQL builds."""
    name = f"silenced {uuid4()}"
    job = plain.enqueue(name)
    plain.beat(text)
    assert [claim.id for claim in plain.claim(name, worker=text)] == [job]
    plain.execute("update workers set beat_at = beat_at - interval '1 day' where id = %s", text)
    assert job in plain.recover_stale_jobs()
    assert plain.job(job)["last_error"].startswith(f"worker {text} went silent")
    plain.cancel(job)
    plain.deregister(text)


@hostile
def test_every_argument_of_the_command_line(canary_dsn: str, text: str) -> None:
    cli = Cli(canary_dsn)
    name = text if is_valid_name(text) else "ordinary"
    data = ("--data", json.dumps({text: text}))
    enqueued = invoke("enqueue", *data, "--json", "--dsn", canary_dsn, "--", name, f"k={text}")
    assert enqueued.exit_code == 0, enqueued.output
    id = json.loads(enqueued.stdout)["id"]
    job = cli.json("show", id)
    assert job["job_type"] == name
    assert job["data"] == {text: text, "k": _as_typed(text)}
    assert id in {job["id"] for job in cli.json("jobs", "--type", name, "--limit", "1000")}
    cli.ok("cancel", id, "--reason", text)
    assert cli.json("show", id)["last_error"] == text
    cli.ok("show", id)
    cli.ok("jobs")
    cli.ok("stats")
    cli.ok("requeue", "--failed", "--yes", "--type", text)
    for args in (
        ("show", "--dsn", canary_dsn, "--", text),
        ("watch", "--dsn", canary_dsn, "--", text),
        ("jobs", "--dsn", canary_dsn, "--status", text),
        ("jobs", "--dsn", text),
    ):
        refused = invoke(*args)
        assert refused.exit_code == 2, refused.output


def _as_typed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


@hostile
def test_every_role_name_in_the_grants(plain: Database, text: str) -> None:
    """`howdah sql --grants` prints SQL that contains the name of a role."""
    names = [f"{kind} {text}"[:60] for kind in ("p", "howdah_observer w", "o")]
    printed = invoke(
        *("sql", "--grants", "--producer", names[0], "--worker", names[1], "--observer", names[2])
    )
    assert printed.exit_code == 0
    assert printed.stdout == engine_files.grants(*names)
    with plain.rolled_back():
        for name in names:
            quoted = name.replace('"', '""')
            plain.connection.execute(cast(LiteralString, f'create role "{quoted}"'))
        plain.connection.execute(cast(LiteralString, printed.stdout))
        assert plain.value(
            "select has_function_privilege(%s, 'howdah.enqueue_many(jsonb)', 'execute')", names[0]
        )


# ── channels ──


@hostile
async def test_a_hostile_notification_does_no_harm(canary_dsn: str, text: str) -> None:
    """Every role of a database may NOTIFY. Workers and followers receive it and continue."""
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, error: complaints.append(error))
    async with Queue(canary_dsn) as queue:

        @queue.job(name=f"heard {uuid4()}")
        async def heard() -> str:
            return "done"

        async with queue.worker():
            handle = await heard.enqueue()
            following = asyncio.create_task(handle.result(timeout=20))
            async with queue.store.acquire() as connection:
                for channel in ("howdah_wake", "howdah_news", "howdah_due"):
                    for message in (text, "", "[1, null]", '{"a": 1}', "null", "[[]]", "\u202e"):
                        await connection.execute("select pg_notify($1, $2)", channel, message)
            assert await following == "done"
            assert await (await heard.enqueue()).result(timeout=20) == "done"
    assert complaints == []


def test_a_sync_program_passes_strings_unchanged(canary_dsn: str) -> None:
    with SyncQueue(canary_dsn) as queue:
        for text in STRINGS:
            if is_valid_name(text):
                handle = queue.enqueue(text, {text: text})
                assert queue.get(handle.id).data == {text: text}
