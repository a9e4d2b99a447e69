"""Probes: every client may check that the dashboard is alive and ready, and learns no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import asyncpg
import httpx
import pytest

from howdah import Queue
from howdah.web import OneTimeLink, Password, dashboard, probes
from tests.web.recorded_queries import RecordedQueries

TOKEN = "the token of a program, 32 characters"


@asynccontextmanager
async def anonymous_client(queue: Queue, **options: Any) -> AsyncGenerator[httpx.AsyncClient]:
    options.setdefault("access", OneTimeLink())
    transport = httpx.ASGITransport(dashboard(queue, **options))
    async with httpx.AsyncClient(transport=transport, base_url="http://10.1.2.3:8080") as client:
        yield client


@pytest.fixture
def answers_are_not_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "SHARED_FOR", -1.0)


async def test_probes_are_public_for_any_host_name(queue: Queue) -> None:
    async with anonymous_client(queue, hosts=["queue.example"], read_only=True) as client:
        for path in ("/healthz", "/readyz"):
            answer = await client.get(path)
            assert (answer.status_code, answer.text) == (200, "ok\n")
            assert answer.headers["cache-control"] == "no-store"
            assert (await client.head(path)).status_code == 200
            assert (await client.post(path)).status_code == 400  # other routes check the host name
        assert (await client.get("/healthz/x")).status_code == 400
        assert (await client.get("/jobs")).status_code == 400


async def test_probes_are_public_for_get_and_head_only(queue: Queue) -> None:
    async with anonymous_client(queue) as client:
        for path in ("/healthz", "/readyz"):
            assert (await client.post(path)).status_code == 401
            assert (await client.get(f"{path}/x")).status_code == 401


@pytest.mark.usefixtures("answers_are_not_cached")
async def test_it_is_not_ready_if_the_schema_does_not_match(queue: Queue, dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    async with anonymous_client(queue) as client:
        for change, status in (
            ("update howdah.installed set schema_number = 0", 503),
            ("update howdah.installed set schema_number = 99, compatible_from = 99", 503),
            ("update howdah.installed set schema_number = 99, compatible_from = 1", 200),
            ("drop schema howdah cascade", 503),
        ):
            await connection.execute(change)
            answer = await client.get("/readyz")
            fits = (
                "ok\n" if status == 200 else "the schema in the database does not fit this code\n"
            )
            assert (answer.status_code, answer.text) == (status, fits), change
            assert (await client.get("/healthz")).status_code == 200
    await connection.close()


async def test_it_is_not_ready_if_the_database_does_not_answer() -> None:
    unreachable = Queue("postgresql://somebody:secret@127.0.0.1:9/nothing")
    async with anonymous_client(unreachable) as client:
        answer = await client.get("/readyz")
        assert (answer.status_code, answer.text) == (503, "the database does not answer\n")
        assert (await client.get("/healthz")).status_code == 200
    await unreachable.close()


async def test_it_is_not_ready_if_the_database_is_blocked(queue: Queue, dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    async with connection.transaction():
        await connection.execute("lock table howdah.installed in access exclusive mode")
        async with anonymous_client(queue, within=timedelta(milliseconds=50)) as client:
            answer = await client.get("/readyz")
            assert (answer.status_code, answer.text) == (503, "the database does not answer\n")
    await connection.close()


async def test_many_probes_share_one_query(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "SHARED_FOR", 3600.0)
    queries = RecordedQueries(monkeypatch)
    async with anonymous_client(queue) as client:
        answers = await asyncio.gather(*(client.get("/readyz") for _ in range(200)))
        assert {answer.status_code for answer in answers} == {200}
        for _ in range(20):
            assert (await client.get("/readyz")).status_code == 200
    assert len(queries.statements) == 1


async def test_a_client_that_disconnects_does_not_cancel_the_query_of_others(
    queue: Queue, dsn: str
) -> None:
    connection = await asyncpg.connect(dsn)
    async with anonymous_client(queue, within=timedelta(seconds=20)) as client:
        async with connection.transaction():
            await connection.execute("lock table howdah.installed in access exclusive mode")
            first = asyncio.create_task(client.get("/readyz"))
            other = asyncio.create_task(client.get("/readyz"))
            await asyncio.sleep(0)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            assert not other.done()
        assert (await other).status_code == 200
    await connection.close()


@pytest.mark.parametrize("access", [OneTimeLink(), Password("correct horse")])
async def test_metrics_without_a_token_are_refused_without_a_redirect_to_the_login(
    queue: Queue, access: Any
) -> None:
    async with anonymous_client(queue, access=access, token=TOKEN) as client:
        answer = await client.get("/metrics")
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == 'Bearer realm="howdah"'
        assert answer.headers["content-type"].startswith("text/plain")
        assert "HOWDAH_WEB_TOKEN: Authorization: Bearer" in answer.text
        program = {"authorization": f"Bearer {TOKEN}"}
        assert (await client.get("/metrics", headers=program)).status_code == 200
        if isinstance(access, Password):  # browsers are still redirected to the form
            assert (await client.get("/jobs")).headers["location"] == "/login"
