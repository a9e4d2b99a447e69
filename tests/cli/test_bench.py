"""howdah bench: it measures every work, says what it cost, and leaves nothing behind."""

from __future__ import annotations

from howdah.client.sync import SyncQueue
from tests.cli.support import Cli

WORKS = ["enqueue_many", "drain", "enqueue", "pickup"]


def test_every_work_is_measured_and_can_be_read_by_a_program(cli: Cli) -> None:
    measured = cli.json("bench", "--jobs", "300")
    assert [one["work"] for one in measured] == WORKS
    for one in measured:
        assert one["jobs"] == 300
        assert one["jobs_per_second"] > 0
        assert one["wal_bytes_per_job"] > 0
    drain, pickup = measured[1], measured[3]
    assert drain["statements_per_job"] < 1, "jobs are claimed and settled in batches"
    assert pickup["latency_ms"]["p50"] <= pickup["latency_ms"]["p99"] <= pickup["latency_ms"]["max"]


def test_the_table_names_every_work(cli: Cli) -> None:
    shown = cli.ok("bench", "--jobs", "50")
    assert [line.split()[0] for line in shown.splitlines()[1:]] == WORKS


def test_the_queue_is_left_as_it_was_found(cli: Cli, jobs: SyncQueue) -> None:
    handle = jobs.enqueue("mail")
    cli.ok("bench", "--jobs", "50")
    assert [job.id for job in jobs.jobs()] == [handle.id]
    assert list(jobs.counts()) == ["mail"]
