"""howdah pause and resume: what is paused, by whom and why."""

from __future__ import annotations

from howdah.client.sync import SyncQueue
from tests.cli.support import Cli, claim


def test_a_paused_type_is_not_claimed_until_it_is_resumed(cli: Cli, jobs: SyncQueue) -> None:
    job = jobs.enqueue("mail").id
    assert cli.ok("pause", "mail", "--reason", "the relay is down") == "mail paused\n"
    assert claim(jobs, "mail") == []
    assert cli.ok("resume", "mail") == "mail resumed\n"
    assert [job.id for job in claim(jobs, "mail")] == [job]


def test_what_is_paused_is_listed_with_who_and_why(cli: Cli) -> None:
    assert cli("pause").stderr == "no type is paused\n"
    cli.ok("pause", "mail", "resize", "--reason", "the relay is down")
    heading, mail, resize = cli.ok("pause").splitlines()
    assert heading.split() == ["TYPE", "SINCE", "BY", "REASON"]
    assert mail.split()[0] == "mail"
    assert mail.endswith("the relay is down")
    assert resize.split()[0] == "resize"
    answer = cli.json("pause")
    assert [entry["job_type"] for entry in answer] == ["mail", "resize"]


def test_pausing_twice_is_no_error_and_keeps_the_first_reason(cli: Cli) -> None:
    cli.ok("pause", "mail", "--reason", "first")
    assert cli.ok("pause", "mail", "--reason", "second") == "mail was already paused\n"
    assert cli.json("pause")[0]["reason"] == "first"


def test_resuming_a_type_that_is_not_paused_is_reported(cli: Cli) -> None:
    cli.ok("pause", "mail")
    mixed = cli("resume", "mail", "other")
    assert (mixed.exit_code, mixed.stdout) == (1, "mail resumed\n")
    assert mixed.stderr == "error: other was not paused: `howdah pause` lists the paused types\n"
    assert cli("resume", "mail", "--json").exit_code == 1


def test_a_reason_needs_a_type(cli: Cli) -> None:
    assert cli("pause", "--reason", "x").exit_code == 2


def test_an_invalid_type_is_wrong_usage(cli: Cli) -> None:
    wrong = cli("pause", "x" * 201)
    assert wrong.exit_code == 2
    assert "a job type must have 1 to 200 characters" in wrong.stderr
