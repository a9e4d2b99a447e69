"""howdah why: one sentence for people, one word for programs, and an exit code."""

from __future__ import annotations

from datetime import datetime
from uuid import uuid4

from howdah.client.sync import SyncQueue
from tests.cli.support import Cli, claim, completed, failed


def test_a_job_that_goes_on_by_itself_is_no_reason_to_act(cli: Cli, jobs: SyncQueue) -> None:
    later = jobs.enqueue("mail", delay=3600).id
    assert "not due before" in cli.ok("why", later)
    jobs.enqueue("mail")
    (held,) = claim(jobs, "mail")
    assert "someone claimed it" in cli.ok("why", held.id)
    assert "It completed" in cli.ok("why", completed(jobs, "other"))


def test_a_job_that_stays_where_it_is_has_an_exit_code_of_its_own(
    cli: Cli, jobs: SyncQueue
) -> None:
    for job in (jobs.enqueue("mail").id, failed(jobs, "report")):
        assert cli("why", job).exit_code == 1
    jobs.pause("mail", "the relay is down")
    stays = cli("why", "mail")
    assert stays.exit_code == 1
    assert "paused" in stays.stdout
    assert "the relay is down" in stays.stdout


def test_a_program_gets_the_reason_and_what_it_was_made_of(cli: Cli, jobs: SyncQueue) -> None:
    later = jobs.enqueue("mail", delay=3600)
    told = cli.json("why", later.id)
    assert (told["reason"], told["job_type"], told["job_id"]) == ("not_due", "mail", str(later.id))
    assert datetime.fromisoformat(told["until"]) == later.job().run_at
    assert told["sentence"].startswith("It is not due before ")


def test_what_is_no_job_is_not_found(cli: Cli) -> None:
    nobody = uuid4()
    missing = cli("why", nobody)
    assert (missing.exit_code, missing.stdout) == (3, "")
    assert f"there is no job {nobody}" in missing.stderr


def test_an_error_cannot_steer_the_terminal(cli: Cli, jobs: SyncQueue) -> None:
    job = failed(jobs, "report", "ValueError: \x1b[31mred")
    assert "\x1b" not in cli("why", job).stdout
