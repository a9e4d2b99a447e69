"""`howdah schedules` lists, sets, pauses, resumes, removes and runs schedules."""

from __future__ import annotations

import psycopg
import pytest

from tests.cli.support import Cli


def make_due(cli: Cli, at: str) -> None:
    """Set the next firing, as a worker would."""
    with psycopg.connect(cli.dsn) as connection:
        connection.execute(f"update howdah.schedules set next_firing = {at}")  # type: ignore[arg-type]


def test_a_schedule_is_set_listed_and_removed(cli: Cli) -> None:
    assert "there is no schedule" in cli("schedules").stderr
    made = cli.json(
        *("schedules", "set", "nightly", "report", "day=today", "n=3"),
        *("--cron", "0 3 * * *", "--tz", "Europe/Berlin", "--missed", "all", "--priority", "7"),
    )
    assert (made["name"], made["job_type"], made["data"]) == (
        "nightly",
        "report",
        {"day": "today", "n": 3},
    )
    assert (made["cron"], made["tz"], made["missed"], made["declared"]) == (
        "0 3 * * *",
        "Europe/Berlin",
        "all",
        False,
    )
    assert made["options"]["priority"] == 7
    cli.ok("schedules", "set", "poll", "fetch", "--every", "5m", "--overlap", "skip")
    listed = cli.ok("schedules")
    assert "0 3 * * * Europe/Berlin" in listed
    assert "every 5m" in listed
    assert "when a worker looks" in listed
    assert [each["name"] for each in cli.json("schedules")] == ["nightly", "poll"]
    assert cli.ok("schedules", "remove", "poll") == "poll removed\n"
    assert cli.json("schedules", "remove", "nightly") == {"name": "nightly", "removed": True}
    assert cli.json("schedules") == []


def test_a_schedule_is_paused_resumed_and_run(cli: Cli) -> None:
    cli.ok("schedules", "set", "poll", "fetch", "--every", "1h")
    assert cli.json("schedules", "pause", "poll") == {"name": "poll", "paused": True}
    assert cli.ok("schedules", "pause", "poll") == "poll was already paused\n"
    assert "paused" in cli.ok("schedules")
    assert cli.ok("schedules", "resume", "poll") == "poll resumed\n"
    assert cli.json("schedules", "resume", "poll") == {"name": "poll", "resumed": False}
    id = cli.ok("schedules", "run-now", "poll").strip()
    assert cli.json("show", id)["job_type"] == "fetch"
    assert "scheduled for" in cli.ok("show", id)
    assert len(cli.json("schedules", "run-now", "poll")["id"]) == 36
    (schedule,) = cli.json("schedules")
    assert schedule["last_status"] == "pending"
    assert "pending" in cli.ok("schedules")


def test_the_next_firings_are_listed(cli: Cli) -> None:
    assert "no schedule is going to fire" in cli("schedules", "next").stderr
    cli.ok("schedules", "set", "poll", "fetch", "--every", "1h")
    make_due(cli, "'2100-01-01 00:30Z'")
    found = cli.json("schedules", "next", 3)
    assert [each["at"] for each in found] == [f"2100-01-01T0{n}:30:00Z" for n in range(3)]
    assert "2100-01-01 01:30:00 UTC" in cli.ok("schedules", "next", 2)
    assert len(cli.json("schedules", "next")) == 10


def test_a_late_schedule_and_a_problem_are_shown(cli: Cli) -> None:
    cli.ok("schedules", "set", "poll", "fetch", "--every", "1h")
    make_due(cli, "now() - interval '1 hour'")
    assert "late" in cli.ok("schedules")
    with psycopg.connect(cli.dsn) as connection:
        connection.execute("update howdah.schedules set problem = 'bad', next_firing = 'infinity'")
    listed = cli("schedules")
    assert "stopped" in listed.stdout
    assert "warning: poll: bad" in listed.stderr


BAD = {
    "wrong number of fields": ("set", "a", "mail", "--cron", "0 3"),
    "one of the two": ("set", "a", "mail"),
    "give cron=": ("set", "a", "mail", "--cron", "0 3 * * *", "--every", "1h"),
    "did you mean 'Europe/Berlin'": (
        *("set", "a", "mail", "--cron", "0 3 * * *"),
        *("--tz", "Europe/Berln"),
    ),
    "tz is for cron": ("set", "a", "mail", "--every", "1h", "--tz", "Asia/Tokyo"),
    "is not a duration": ("set", "a", "mail", "--every", "soon"),
    "at least 1 second": ("set", "a", "mail", "--every", "10ms"),
    "'no' is not one of 'skip', 'last', 'all'": (
        *("set", "a", "mail", "--every", "1h"),
        *("--missed", "no"),
    ),
    "'no' is not one of 'allow', 'skip'": (
        *("set", "a", "mail", "--every", "1h"),
        *("--overlap", "no"),
    ),
    "is not KEY=VALUE": ("set", "a", "mail", "to", "--every", "1h"),
    "it is not valid JSON": ("set", "a", "mail", "--every", "1h", "--data", "{"),
    "is not a priority": ("set", "a", "mail", "--every", "1h", "--priority", "high"),
    "the name of a schedule must be text of 1 to 200": ("set", "", "mail", "--every", "1h"),
    "no schedule 'nightyl' (did you mean 'nightly'?)": ("pause", "nightyl"),
    "no schedule 'nightyle' (did you mean": ("resume", "nightyle"),
    "no schedule 'other'; known: 'nightly'": ("remove", "other"),
    "no schedule 'others'; known": ("run-now", "others"),
    "0 is not in the range 1<=x<=1000": ("next", "0"),
    "No such command 'list'": ("list",),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_wrong_usage_and_changes_nothing(cli: Cli, message: str) -> None:
    cli.ok("schedules", "set", "nightly", "report", "--cron", "0 3 * * *")
    before = cli.json("schedules")
    refused = cli("schedules", *BAD[message])
    assert refused.exit_code == 2
    assert message in " ".join(refused.stderr.split())
    assert cli.json("schedules") == before
