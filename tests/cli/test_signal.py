"""howdah signal, and what why and show say of a job that waits for one."""

from __future__ import annotations

import asyncio
from uuid import UUID, uuid4

import pytest

from howdah import Queue
from howdah.client.sync import SyncQueue
from tests.cli.support import Cli
from tests.support.waiting_jobs import waiting_job


@pytest.fixture
def waits(dsn: str) -> UUID:
    async def make() -> UUID:
        async with Queue(dsn) as queue:
            return await waiting_job(queue)

    return asyncio.run(make())


def test_why_and_show_say_what_the_job_waits_for(cli: Cli, waits: UUID) -> None:
    said = cli.ok("why", waits)
    assert "It waits for the signal approved since " in said
    assert f"`howdah signal {waits} approved` sends it." in said
    shown = cli.ok("show", waits)
    assert "It waits for the signal approved since " in shown
    assert "step 'charge'" in shown
    assert "took 3.0 s" in shown


def test_signal_sends_its_data_and_says_whether_the_job_waited(
    cli: Cli, jobs: SyncQueue, waits: UUID
) -> None:
    assert cli.ok("signal", waits, "approved", '{"by": "ann"}') == f"{waits} goes on\n"
    assert "it is kept" in cli.ok("signal", waits, "approved")
    assert cli.json("signal", waits, "other", "[1]") == {"id": str(waits), "waited": False}


def test_a_signal_that_cannot_be_sent_is_named(cli: Cli, jobs: SyncQueue, waits: UUID) -> None:
    wrong = cli("signal", waits, "approved", "yes")
    assert wrong.exit_code == 2
    assert "Text needs double quotes: '\"yes\"'" in " ".join(wrong.stderr.split())
    assert cli("signal", waits, "").exit_code == 2
    assert cli("signal", uuid4(), "approved").exit_code == 3
    jobs.cancel(waits)
    ended = cli("signal", waits, "approved")
    assert ended.exit_code == 1
    assert "has ended as cancelled" in ended.stderr
