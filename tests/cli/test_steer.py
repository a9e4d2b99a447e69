"""howdah cancel, requeue, recover: they change jobs, and say which did not change."""

from __future__ import annotations

from uuid import uuid4

import psycopg
import pytest

from howdah import State
from howdah.client import matching
from howdah.client.sync import SyncQueue
from tests.cli.support import Cli, claim, completed, failed


def test_cancel_reports_the_jobs_that_it_could_not_cancel(cli: Cli, jobs: SyncQueue) -> None:
    pending, done, missing_id = jobs.enqueue("mail").id, completed(jobs, "report"), uuid4()
    assert cli.ok("cancel", pending, "--reason", "not needed") == f"{pending} cancelled\n"
    job = jobs.get(pending)
    assert (job.status, job.last_error) == (State.CANCELLED, "not needed")

    again = cli("cancel", pending, done)
    assert (again.exit_code, again.stdout) == (1, "")
    assert f"error: {done} is completed, so it was not cancelled" in again.stderr

    missing = cli("cancel", missing_id)
    assert missing.exit_code == 3
    assert missing.stderr.startswith(f"error: there is no job {missing_id}: the id is wrong")


def test_cancel_prints_json(cli: Cli, jobs: SyncQueue) -> None:
    pending, done = jobs.enqueue("mail").id, completed(jobs, "report")
    assert cli.json("cancel", pending) == {"cancelled": [str(pending)], "left": {}, "missing": []}
    assert cli("cancel", done, "--json").exit_code == 1


def test_requeue_gives_more_attempts(cli: Cli, jobs: SyncQueue) -> None:
    id = failed(jobs, "report")
    assert cli.ok("requeue", id, "--attempts", 4) == f"{id} requeued\n"
    job = jobs.get(id)
    assert (job.status, job.attempts, job.max_attempts) == (State.PENDING, 1, 5)

    again = cli("requeue", id)
    assert (again.exit_code, again.stdout) == (1, "")
    assert "is pending, so it was not requeued" in again.stderr


def test_requeue_of_all_failed_goes_page_by_page(
    cli: Cli, jobs: SyncQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = {failed(jobs, "report") for _ in range(5)}
    other, done = failed(jobs, "mail"), completed(jobs, "report")
    monkeypatch.setattr(matching, "PAGE", 2)
    assert cli.ok("requeue", "--failed", "--type", "report", "--yes") == "5 jobs requeued\n"
    assert {job.id for job in jobs.jobs(status="pending")} == broken
    assert jobs.get(other).status is State.FAILED
    assert jobs.get(done).status is State.COMPLETED


def test_requeue_of_all_failed_asks_first(cli: Cli, jobs: SyncQueue) -> None:
    id = failed(jobs, "report")
    refused = cli("requeue", "--failed", input="n\n")
    assert refused.exit_code == 1
    assert "Requeue 1 job?" in refused.stderr
    assert jobs.get(id).status is State.FAILED

    no_answer = cli("requeue", "--failed", input="")
    assert no_answer.exit_code == 1
    assert jobs.get(id).status is State.FAILED

    assert cli.ok("requeue", "--failed", input="y\n") == "1 job requeued\n"
    assert jobs.get(id).status is State.PENDING


def test_requeue_takes_either_jobs_or_all_failed(cli: Cli) -> None:
    for arguments in ([], [uuid4(), "--failed"], [uuid4(), "--type", "report"]):
        refused = cli("requeue", *arguments)
        assert refused.exit_code == 2
        assert "--failed" in refused.stderr


def test_recover_takes_jobs_that_were_claimed_too_long_ago(cli: Cli, jobs: SyncQueue) -> None:
    jobs.enqueue("mail")
    jobs.enqueue("last", max_attempts=1)
    held = {job.id: job for job in claim(jobs, "mail", "last", worker_id="foreign")}
    assert cli.json("recover") == []
    with psycopg.connect(cli.dsn, autocommit=True) as connection:
        connection.execute("update howdah.jobs set claimed_at = claimed_at - interval '6 minutes'")
    assert cli("recover", "--timeout", "7m").stderr == "0 jobs recovered\n"

    recovered = cli.json("recover", "--timeout", "5m")
    assert {entry["id"] for entry in recovered} == {str(id) for id in held}
    assert {entry["status"] for entry in recovered} == {"pending", "failed"}
    assert {entry["worker_id"] for entry in recovered} == {"foreign"}


def test_recover_prints_a_table(cli: Cli, jobs: SyncQueue) -> None:
    jobs.enqueue("mail")
    (held,) = claim(jobs, "mail", worker_id="foreign")
    with psycopg.connect(cli.dsn, autocommit=True) as connection:
        connection.execute("update howdah.jobs set claimed_at = claimed_at - interval '6 minutes'")
    done = cli("recover")
    assert done.stdout.split() == ["ID", "NOW", "TAKEN", "FROM", str(held.id), "pending", "foreign"]
    assert done.stderr == "1 job recovered\n"
