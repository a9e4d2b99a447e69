"""howdah bench: it measures every workload and its cost, and leaves no job in the queue."""

from __future__ import annotations

from howdah.client.sync import SyncQueue
from tests.cli.support import Cli

WORKLOADS = ["enqueue_many", "drain", "enqueue", "pickup"]


def test_every_workload_is_measured_and_printed_as_json(cli: Cli) -> None:
    measured = cli.json("bench", "--jobs", "300")
    assert [row["work"] for row in measured] == WORKLOADS
    for row in measured:
        assert row["jobs"] == 300
        assert row["jobs_per_second"] > 0
        assert row["wal_bytes_per_job"] > 0
    drain, pickup = measured[1], measured[3]
    assert drain["statements_per_job"] < 1, "jobs are claimed and settled in batches"
    assert pickup["latency_ms"]["p50"] <= pickup["latency_ms"]["p99"] <= pickup["latency_ms"]["max"]


def test_the_table_names_every_workload(cli: Cli) -> None:
    table = cli.ok("bench", "--jobs", "50")
    assert [line.split()[0] for line in table.splitlines()[1:]] == WORKLOADS


def test_the_queue_is_unchanged_afterwards(cli: Cli, jobs: SyncQueue) -> None:
    handle = jobs.enqueue("mail")
    cli.ok("bench", "--jobs", "50")
    assert [job.id for job in jobs.jobs()] == [handle.id]
    assert list(jobs.counts()) == ["mail"]
