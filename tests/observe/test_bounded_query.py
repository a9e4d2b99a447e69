"""A query changes nothing and never takes longer than its time limit."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import pytest

from howdah import Queue, observe
from howdah.errors import ReadOnly
from howdah.store import query
from tests.support import Database
from tests.support.postgres_server import PgServer
from tests.support.proxy import Proxy


async def test_a_query_that_takes_too_long_is_stopped_by_the_server(
    queue: Queue, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query, "GRACE", 3600)  # the client would wait until the query ends
    backend = await query.fetchval(queue.store, query.WITHIN, "select pg_backend_pid()")
    with pytest.raises(observe.TookTooLong, match=r"within 0\.05 s"):
        await query.fetch(queue.store, timedelta(milliseconds=50), "select pg_sleep(20)")
    other = Database(dsn)
    assert other.value("select state from pg_stat_activity where pid = %s", backend) == "idle"
    other.close()
    # the connection was kept
    assert await query.fetchval(queue.store, query.WITHIN, "select pg_backend_pid()") == backend
    # no setting stays on the connection
    assert await queue.store.fetchval("show statement_timeout") == "0"


async def test_a_query_cannot_change_anything(queue: Queue) -> None:
    with pytest.raises(ReadOnly):
        await query.fetch(queue.store, query.WITHIN, "select howdah.enqueue('mail')")


async def test_an_overview_lists_the_parts_that_took_too_long(db: Database) -> None:
    db.enqueue("mail")
    db.complete(db.claim("mail"))
    async with Queue(db.dsn) as queue:
        with db.transaction():
            db.execute("lock table howdah.jobs_live in access exclusive mode")
            overview = await observe.overview(queue.store, within=timedelta(milliseconds=200))
            assert overview.late == ["waiting", "limited", "scheduled", "running"]
            (mail,) = overview.types
            assert mail.finished == {"completed": 1}
            (late_problem,) = [
                problem
                for problem in await observe.problems(
                    queue.store, within=timedelta(milliseconds=200)
                )
                if problem.kind == "late"
            ]
            assert "waiting, limited, scheduled, running" in late_problem.sentence
        assert (await observe.overview(queue.store)).late == []


async def test_the_cost_of_a_query_is_server_time_without_the_round_trip(
    tmp_path: Path,
) -> None:
    server = PgServer(tmp_path).make().start()
    with Proxy(server.port) as proxy:
        async with Queue(server.dsn("postgres", proxy.ports)) as queue:
            await queue.install()

            async def cost(sql: str) -> float:
                with query.server_time() as spent:
                    await query.fetch(queue.store, query.WITHIN, sql)
                return spent.seconds

            await cost("select 1")
            proxy.slow = 0.02
            began = time.monotonic()
            costs = [await cost("select 1") for _ in range(3)]
            elapsed = (time.monotonic() - began) / 3
            # the proxy delays each message, and a query sends a few more messages than `begin`
            assert min(costs) < elapsed / 3
            assert await cost("select pg_sleep(0.5)") - min(costs) > 0.4
    server.crash()
