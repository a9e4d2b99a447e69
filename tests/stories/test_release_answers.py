"""A release whose answer is lost is sent again only by a worker that claims no more.

Otherwise the job may have come back to the same worker as the same attempt, and the second release
would release that claim. A worker that stops claims nothing, so it sends again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest

from howdah import Queue, State
from howdah.claim.claim import claim
from howdah.claim.line import Line
from howdah.in_hand import InHand
from howdah.outcomes import Ending, Release
from howdah.run.executor import Attempt
from howdah.settle import Settler
from tests.support.postgres_server import PgServer
from tests.support.proxy import Proxy
from tests.support.waiting import eventually

pytestmark = pytest.mark.xdist_group("stories")

WORKER = "worker"


async def no_reports() -> dict[tuple[UUID, int], str]:
    return {}


@dataclass
class ProxiedSettler:
    """A settler behind a proxy, and a direct connection to the database."""

    queue: Queue  # through the proxy
    proxy: Proxy
    direct: psycopg.Connection
    in_hand: InHand[Attempt] = field(default_factory=lambda: InHand[Attempt](1, 1))
    unanswered: int = 0  # releases without an answer

    def on_unanswered(self) -> None:
        """Note that a release got no answer; a worker that does not stop claims again at once."""
        self.unanswered += 1
        if self.in_hand.claiming:
            claimed = self.direct.execute(
                "select id from howdah.claim_job_batch(%s, '{mail}')", [WORKER]
            ).fetchall()
            assert claimed, "the release was carried out: the job could be claimed again"

    def settler(self) -> Settler:
        return Settler(self.queue.store, WORKER, self.in_hand, no_reports, self.on_unanswered)

    def job(self) -> tuple[str, str | None, int]:
        row = self.direct.execute("select status, worker_id, attempts from howdah.jobs").fetchone()
        assert row is not None
        return row


@pytest.fixture
def direct(own_server: PgServer, database: str) -> Generator[psycopg.Connection]:
    with psycopg.connect(own_server.dsn(database), autocommit=True) as connection:
        yield connection


@pytest.fixture
async def proxied(
    own_server: PgServer, database: str, direct: psycopg.Connection
) -> AsyncGenerator[ProxiedSettler]:
    with Proxy(own_server.port) as proxy:
        dsn = own_server.dsn(database, proxy.ports)
        async with Queue(dsn, call_timeout=timedelta(seconds=10)) as queue:
            yield ProxiedSettler(queue, proxy, direct)


async def release_without_answer(proxied: ProxiedSettler) -> None:
    """Claim a job, release it, lose the answer, and wait until the settler has finished."""

    await proxied.queue.enqueue("mail")
    (held,) = await claim(proxied.queue.store, WORKER, 1, Line(["mail"]))
    settler = proxied.settler()
    proxied.proxy.drop_answer(r"howdah\.release")
    proxied.in_hand.add_ending(Ending(held, Release()))
    running = asyncio.create_task(settler.run())
    try:
        await eventually(lambda: proxied.unanswered == 1, "the answer is lost")
        async with asyncio.timeout(20):
            await settler.flushed()
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def test_a_release_is_not_sent_again_while_the_worker_claims(proxied: ProxiedSettler) -> None:
    await release_without_answer(proxied)
    assert proxied.job() == (State.CLAIMED, WORKER, 1), "the second claim is not released"


async def test_a_release_is_sent_again_when_the_worker_stops(proxied: ProxiedSettler) -> None:
    proxied.in_hand.claiming = False
    await release_without_answer(proxied)
    assert proxied.proxy.dropped == 1
    assert proxied.job() == (State.PENDING, None, 0)


async def test_a_release_that_never_arrived_is_sent_again_when_the_worker_stops(
    proxied: ProxiedSettler,
) -> None:
    """The session ended before the release ran: without another release the job stays claimed."""
    proxied.in_hand.claiming = False

    await proxied.queue.enqueue("mail")
    (held,) = await claim(proxied.queue.store, WORKER, 1, Line(["mail"]))
    settler = proxied.settler()
    proxied.direct.execute("begin; lock table howdah.jobs_live in access exclusive mode")
    proxied.in_hand.add_ending(Ending(held, Release()))
    running = asyncio.create_task(settler.run())
    end_waiting_session = (
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() "
        "and query ~ 'howdah.release' and wait_event_type = 'Lock'"
    )

    def is_ended() -> bool:
        proxied.direct.execute(
            "select pg_stat_clear_snapshot()"
        )  # a transaction reads the statistics once
        return bool(proxied.direct.execute(end_waiting_session).fetchall())

    await eventually(is_ended, "the waiting session is ended")
    await eventually(lambda: proxied.unanswered == 1, "there is no answer")
    assert proxied.in_hand.unwritten_leases() == [(held.id, 1)]
    proxied.direct.execute("commit")
    async with asyncio.timeout(20):
        await settler.flushed()
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    assert proxied.job() == (State.PENDING, None, 0)
