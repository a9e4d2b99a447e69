"""A look changes nothing and never takes longer than it was given."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import pytest

from howdah import Queue, observe
from howdah.errors import ReadOnly
from howdah.store import query
from tests.stories.proxy import Proxy
from tests.stories.server import PgServer
from tests.support import Database


async def test_a_look_that_takes_too_long_is_stopped_by_the_server(
    queue: Queue, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query, "PATIENCE", 3600)  # we would wait for it to the end
    backend = await query.fetchval(queue.store, query.WITHIN, "select pg_backend_pid()")
    with pytest.raises(observe.TookTooLong, match=r"within 0\.05 s"):
        await query.fetch(queue.store, timedelta(milliseconds=50), "select pg_sleep(20)")
    other = Database(dsn)
    assert other.value("select state from pg_stat_activity where pid = %s", backend) == "idle"
    other.close()
    # the connection was not given up
    assert await query.fetchval(queue.store, query.WITHIN, "select pg_backend_pid()") == backend
    # nothing of it stays on the connection
    assert await queue.store.fetchval("show statement_timeout") == "0"


async def test_a_look_cannot_change_anything(queue: Queue) -> None:
    with pytest.raises(ReadOnly):
        await query.fetch(queue.store, query.WITHIN, "select howdah.enqueue('mail')")


async def test_an_overview_leaves_out_what_takes_too_long_and_says_so(db: Database) -> None:
    db.enqueue("mail")
    db.complete(db.claim("mail"))
    async with Queue(db.dsn) as queue:
        with db.transaction():
            db.execute("lock table howdah.jobs_live in access exclusive mode")
            seen = await observe.overview(queue.store, within=timedelta(milliseconds=200))
            assert seen.late == ["waiting", "scheduled", "running"]
            (mail,) = seen.types
            assert mail.finished == {"completed": 1}
            (late,) = [
                one
                for one in await observe.problems(queue.store, within=timedelta(milliseconds=200))
                if one.kind == "late"
            ]
            assert "waiting, scheduled, running" in late.sentence
        assert (await observe.overview(queue.store)).late == []


async def test_what_a_look_costs_is_the_servers_time_and_not_the_way_there(
    tmp_path: Path,
) -> None:
    server = PgServer(tmp_path).make().start()
    with Proxy(server.port) as proxy:
        async with Queue(server.dsn("postgres", proxy.ports)) as queue:
            await queue.install()

            async def cost(sql: str) -> float:
                with query.spending() as spent:
                    await query.fetch(queue.store, query.WITHIN, sql)
                return spent.seconds

            await cost("select 1")
            proxy.slow = 0.02
            began = time.monotonic()
            costs = [await cost("select 1") for _ in range(3)]
            passed = (time.monotonic() - began) / 3
            # the proxy holds up each message by itself, and a question has a few more than `begin`
            assert min(costs) < passed / 3
            assert await cost("select pg_sleep(0.5)") - min(costs) > 0.4
    server.crash()
