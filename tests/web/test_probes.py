"""Probes: everybody may ask whether the dashboard lives and can work, and learns nothing else."""

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
from tests.web.asked import Asked

TOKEN = "the token of a program, 32 characters"


@asynccontextmanager
async def stranger(queue: Queue, **options: Any) -> AsyncGenerator[httpx.AsyncClient]:
    options.setdefault("access", OneTimeLink())
    transport = httpx.ASGITransport(dashboard(queue, **options))
    async with httpx.AsyncClient(transport=transport, base_url="http://10.1.2.3:8080") as client:
        yield client


@pytest.fixture
def answers_hold_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "HOLDS", -1.0)


async def test_a_stranger_may_ask_whatever_name_the_server_is_called_by(queue: Queue) -> None:
    async with stranger(queue, hosts=["queue.example"], read_only=True) as client:
        for path in ("/healthz", "/readyz"):
            answer = await client.get(path)
            assert (answer.status_code, answer.text) == (200, "ok\n")
            assert answer.headers["cache-control"] == "no-store"
            assert (await client.head(path)).status_code == 200
            assert (await client.post(path)).status_code == 400  # by that name, everything else
        assert (await client.get("/healthz/x")).status_code == 400
        assert (await client.get("/jobs")).status_code == 400


async def test_only_a_look_is_public(queue: Queue) -> None:
    async with stranger(queue) as client:
        for path in ("/healthz", "/readyz"):
            assert (await client.post(path)).status_code == 401
            assert (await client.get(f"{path}/x")).status_code == 401


@pytest.mark.usefixtures("answers_hold_no_longer")
async def test_it_is_not_ready_where_the_schema_does_not_fit(queue: Queue, dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    async with stranger(queue) as client:
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


async def test_it_is_not_ready_where_the_database_does_not_answer() -> None:
    nowhere = Queue("postgresql://somebody:secret@127.0.0.1:9/nothing")
    async with stranger(nowhere) as client:
        answer = await client.get("/readyz")
        assert (answer.status_code, answer.text) == (503, "the database does not answer\n")
        assert (await client.get("/healthz")).status_code == 200
    await nowhere.close()


async def test_it_is_not_ready_where_the_database_is_stuck(queue: Queue, dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    async with connection.transaction():
        await connection.execute("lock table howdah.installed in access exclusive mode")
        async with stranger(queue, within=timedelta(milliseconds=50)) as client:
            answer = await client.get("/readyz")
            assert (answer.status_code, answer.text) == (503, "the database does not answer\n")
    await connection.close()


async def test_many_who_ask_cost_one_look(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "HOLDS", 3600.0)
    asked = Asked(monkeypatch)
    async with stranger(queue) as client:
        answers = await asyncio.gather(*(client.get("/readyz") for _ in range(200)))
        assert {answer.status_code for answer in answers} == {200}
        for _ in range(20):
            assert (await client.get("/readyz")).status_code == 200
    assert len(asked.statements) == 1


async def test_somebody_who_hangs_up_does_not_end_the_look_of_others(
    queue: Queue, dsn: str
) -> None:
    connection = await asyncpg.connect(dsn)
    async with stranger(queue, within=timedelta(seconds=20)) as client:
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
async def test_metrics_without_a_token_are_refused_and_lead_to_no_login(
    queue: Queue, access: Any
) -> None:
    async with stranger(queue, access=access, token=TOKEN) as client:
        answer = await client.get("/metrics")
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == 'Bearer realm="howdah"'
        assert answer.headers["content-type"].startswith("text/plain")
        program = {"authorization": f"Bearer {TOKEN}"}
        assert (await client.get("/metrics", headers=program)).status_code == 200
        if isinstance(access, Password):  # people are still led to the form
            assert (await client.get("/jobs")).headers["location"] == "/login"
