"""howdah why: a sentence for people, a reason for programs, and an exit code."""

from __future__ import annotations

from datetime import datetime
from uuid import uuid4

from howdah.client.sync import SyncQueue
from tests.cli.support import Cli, claim, completed, failed


def test_a_job_that_needs_no_action_has_exit_code_0(cli: Cli, jobs: SyncQueue) -> None:
    later = jobs.enqueue("mail", delay=3600).id
    assert "not due before" in cli.ok("why", later)
    jobs.enqueue("mail")
    (held,) = claim(jobs, "mail")
    assert "someone claimed it" in cli.ok("why", held.id)
    assert "It completed" in cli.ok("why", completed(jobs, "other"))


def test_a_job_that_needs_an_action_has_exit_code_1(cli: Cli, jobs: SyncQueue) -> None:
    for job in (jobs.enqueue("mail").id, failed(jobs, "report")):
        assert cli("why", job).exit_code == 1
    jobs.pause("mail", "the relay is down")
    result = cli("why", "mail")
    assert result.exit_code == 1
    assert "paused" in result.stdout
    assert "the relay is down" in result.stdout


def test_json_has_the_reason_and_its_details(cli: Cli, jobs: SyncQueue) -> None:
    later = jobs.enqueue("mail", delay=3600)
    answer = cli.json("why", later.id)
    assert (answer["reason"], answer["job_type"], answer["job_id"]) == (
        "not_due",
        "mail",
        str(later.id),
    )
    assert datetime.fromisoformat(answer["until"]) == later.job().run_at
    assert answer["sentence"].startswith("It is not due before ")


def test_an_unknown_id_has_exit_code_3(cli: Cli) -> None:
    unknown_id = uuid4()
    missing = cli("why", unknown_id)
    assert (missing.exit_code, missing.stdout) == (3, "")
    assert f"there is no job {unknown_id}" in missing.stderr


def test_an_error_is_printed_without_control_characters(cli: Cli, jobs: SyncQueue) -> None:
    job = failed(jobs, "report", "ValueError: \x1b[31mred")
    assert "\x1b" not in cli("why", job).stdout
