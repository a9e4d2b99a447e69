"""howdah cancel, requeue, recover: jobs are moved, and what was not moved is told."""

from __future__ import annotations

from uuid import uuid4

import psycopg
import pytest

from howdah import State
from howdah.cli import requeue
from howdah.client.sync import SyncQueue
from tests.cli.support import Cli, claim, completed, failed


def test_cancel_moves_what_it_can_and_says_what_it_cannot(cli: Cli, jobs: SyncQueue) -> None:
    waits, done, nobody = jobs.enqueue("mail").id, completed(jobs, "report"), uuid4()
    assert cli.ok("cancel", waits, "--reason", "not needed") == f"{waits} cancelled\n"
    job = jobs.get(waits)
    assert (job.status, job.last_error) == (State.CANCELLED, "not needed")

    again = cli("cancel", waits, done)
    assert (again.exit_code, again.stdout) == (1, "")
    assert f"error: {done} is completed, so it was not cancelled" in again.stderr

    missing = cli("cancel", nobody)
    assert (missing.exit_code, missing.stderr) == (3, f"error: there is no job {nobody}\n")


def test_cancel_tells_a_program(cli: Cli, jobs: SyncQueue) -> None:
    waits, done = jobs.enqueue("mail").id, completed(jobs, "report")
    assert cli.json("cancel", waits) == {"cancelled": [str(waits)], "left": {}, "missing": []}
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
    monkeypatch.setattr(requeue, "PAGE", 2)
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

    silence = cli("requeue", "--failed", input="")
    assert silence.exit_code == 1
    assert jobs.get(id).status is State.FAILED

    assert cli.ok("requeue", "--failed", input="y\n") == "1 job requeued\n"
    assert jobs.get(id).status is State.PENDING


def test_requeue_wants_jobs_or_all_failed_not_both_not_neither(cli: Cli) -> None:
    for arguments in ([], [uuid4(), "--failed"], [uuid4(), "--type", "report"]):
        refused = cli("requeue", *arguments)
        assert refused.exit_code == 2
        assert "--failed" in refused.stderr


def test_recover_takes_from_those_who_held_it_too_long(cli: Cli, jobs: SyncQueue) -> None:
    jobs.enqueue("mail")
    jobs.enqueue("last", max_attempts=1)
    held = {job.id: job for job in claim(jobs, "mail", "last", worker_id="foreign")}
    assert cli.json("recover") == []
    with psycopg.connect(cli.dsn, autocommit=True) as connection:
        connection.execute("update howdah.jobs set claimed_at = claimed_at - interval '6 minutes'")
    assert cli("recover", "--timeout", "7m").stderr == "0 jobs recovered\n"

    found = cli.json("recover", "--timeout", "5m")
    assert {one["id"] for one in found} == {str(id) for id in held}
    assert {one["status"] for one in found} == {"pending", "failed"}
    assert {one["worker_id"] for one in found} == {"foreign"}


def test_recover_tells_a_person(cli: Cli, jobs: SyncQueue) -> None:
    jobs.enqueue("mail")
    (held,) = claim(jobs, "mail", worker_id="foreign")
    with psycopg.connect(cli.dsn, autocommit=True) as connection:
        connection.execute("update howdah.jobs set claimed_at = claimed_at - interval '6 minutes'")
    done = cli("recover")
    assert done.stdout.split() == ["ID", "NOW", "TAKEN", "FROM", str(held.id), "pending", "foreign"]
    assert done.stderr == "1 job recovered\n"
