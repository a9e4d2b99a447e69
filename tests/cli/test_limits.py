"""`howdah limits` lists, makes, changes and removes named limits; `howdah enqueue` takes a key."""

from __future__ import annotations

import psycopg

from tests.cli.support import Cli


def test_limits_are_listed_changed_and_removed(cli: Cli) -> None:
    assert "there is no limit" in cli("limits").stderr
    cli.ok("limits", "api-2", "--at-once", 1)
    (limit,) = cli.json("limits", "api", "--rate", 100, "--per", "1m", "--burst", 10)
    assert (limit["name"], limit["rate"], limit["burst"], limit["at_once"]) == (
        "api",
        100,
        10,
        None,
    )
    listed = cli.ok("limits")
    assert "burst 10" in listed
    assert "api-2" in listed
    cli.ok("limits", "api", "--remove")
    assert [limit["name"] for limit in cli.json("limits")] == ["api-2"]


def test_the_rules_of_job_types_are_listed(cli: Cli) -> None:
    with psycopg.connect(cli.dsn) as connection:
        for call in (
            "'mail', 3",
            "'book', 1, true",
            "'render', null, p_fair => true",
        ):
            connection.execute(f"select howdah.set_type_limit({call})")  # type: ignore[arg-type]
    lines = cli.ok("limits").splitlines()
    rules = {line.split()[0]: line for line in lines}
    assert " 3 " in rules["mail"]
    assert "1, in order" in rules["book"]
    assert "fair, 100 in line" in rules["render"]


def test_a_bad_limit_is_refused(cli: Cli) -> None:
    for arguments, message in (
        (("api", "--at-once", "0"), "at_once must be between 1"),
        (("api", "--rate", "5", "--per", "0s"), "per in Rate(…) must be longer than 0"),
        (("--remove",), "name the limit"),
        (("api", "--per", "1m"), "need --rate"),
        (("api", "--remove", "--at-once", "1"), "takes no other value"),
    ):
        result = cli("limits", *arguments)
        assert result.exit_code != 0
        assert message in result.stderr
    assert cli.json("limits") == []


def test_a_job_is_enqueued_with_a_key(cli: Cli) -> None:
    cli.ok("enqueue", "mail", "--key", "tenant-7")
    with psycopg.connect(cli.dsn) as connection:
        row = connection.execute("select key, admission from howdah.jobs").fetchone()
    assert row == ("tenant-7", "slot")
