"""`howdah limits` lists, makes, changes and removes named limits; `howdah enqueue` takes a key."""

from __future__ import annotations

import psycopg

from tests.cli.support import Cli


def test_limits_are_listed_changed_and_removed(cli: Cli) -> None:
    assert "there is no limit" in cli("limits").stderr
    cli.ok("limits", "api-2", "--at-once", 1)
    found = cli.json("limits", "api", "--rate", 100, "--per", "1m", "--burst", 10)
    (limit,) = found["limits"]
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
    assert [limit["name"] for limit in cli.json("limits")["limits"]] == ["api-2"]


def test_what_is_left_out_of_a_change_stays(cli: Cli) -> None:
    cli.ok("limits", "api", "--rate", 100, "--per", "1m", "--burst", 10, "--per-key")
    (limit,) = cli.json("limits", "api", "--at-once", 5)["limits"]
    assert (limit["at_once"], limit["rate"], limit["burst"], limit["per_key"]) == (5, 100, 10, True)
    (limit,) = cli.json("limits", "api", "--rate", "any", "--not-per-key")["limits"]
    assert (limit["at_once"], limit["rate"], limit["per"], limit["per_key"]) == (
        5,
        None,
        None,
        False,
    )
    refused = cli("limits", "api", "--at-once", "any")
    assert refused.exit_code != 0
    assert "needs at_once or a rate" in refused.stderr


def test_the_use_of_a_limit_is_listed(cli: Cli) -> None:
    cli.ok("limits", "api", "--at-once", 1)
    cli.ok("limits", "--type", "mail", "--limit", "api", "--at-once", "any")
    for _ in range(3):
        cli.ok("enqueue", "mail", "--force")
    with psycopg.connect(cli.dsn) as connection:
        connection.execute("select howdah.admit()")
    (limit,) = cli.json("limits")["limits"]
    assert limit["admitted"] == {"jobs": 1, "more": False}
    assert limit["waiting"] == {"jobs": 2, "more": False}
    assert (limit["at_work"], limit["types"]) == (0, ["mail"])
    heads = cli.ok("limits").splitlines()[0].split()
    assert heads[-6:] == ["ADMITTED", "AT", "WORK", "WAITING", "NEXT", "CHANGED", "BY"][-6:]


def test_the_rule_of_a_type_is_set_and_removed(cli: Cli) -> None:
    cli.ok("limits", "openai", "--at-once", 4)
    (rule,) = cli.json("limits", "--type", "mail", "--at-once", 3, "--limit", "openai")["rules"]
    assert (rule["at_once"], rule["limit"], rule["ordered"]) == (3, "openai", False)
    (rule,) = cli.json("limits", "--type", "mail", "--ordered")["rules"]
    assert (rule["at_once"], rule["limit"], rule["ordered"]) == (1, None, True)
    assert "1, ordered" in cli.ok("limits")
    (rule,) = cli.json("limits", "--type", "mail", "--fair")["rules"]
    assert (rule["fair"], rule["ordered"]) == (True, False)
    cli.ok("limits", "--type", "mail", "--remove")
    assert "no rule" in cli("limits", "--type", "mail").stderr
    assert cli.json("limits")["rules"] == []


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
    assert "1, ordered" in rules["book"]
    assert "fair, 100 in line" in rules["render"]


def test_a_bad_limit_is_refused(cli: Cli) -> None:
    cli.ok("limits", "openai", "--at-once", 4)
    for arguments, message in (
        (("api", "--at-once", "0"), "at_once must be between 1"),
        (("api", "--at-once", "many"), "'many' is not a whole number"),
        (("api", "--rate", "0"), "count in Rate(…) must be between 1"),
        (("api", "--rate", "5", "--per", "0s"), "per in Rate(…) must be longer than 0"),
        (("--remove",), "name the limit"),
        (("api", "--per", "1m"), "need --rate"),
        (("api", "--remove", "--at-once", "1"), "takes no other value"),
        (("api", "--per-key"), "there is no limit 'api'"),
        (("opnai",), "did you mean 'openai'?"),
        (("opnai", "--remove"), "did you mean 'openai'?"),
        (("api", "--ordered"), "need --type"),
        (("--type", "mail", "--rate", "1"), "for a named limit"),
        (("api", "--type", "mail"), "not both"),
        (("--type", "mail", "--at-once", "2", "--ordered"), "at_once must be 1"),
        (("--type", "mail", "--at-once", "2", "--fair"), "leave out at_once=2 or fair"),
        (("api", "--fair"), "need --type"),
        (("--type", "mail", "--limit", "opnai"), "did you mean 'openai'?"),
        (("--type", "", "--ordered"), "job type"),
    ):
        result = cli("limits", *arguments)
        assert result.exit_code != 0, arguments
        assert message in result.stderr, (arguments, result.stderr)
    found = cli.json("limits")
    assert [limit["name"] for limit in found["limits"]] == ["openai"]
    assert found["rules"] == []


def test_a_job_is_enqueued_with_a_key(cli: Cli) -> None:
    cli.ok("enqueue", "mail", "--key", "tenant-7")
    with psycopg.connect(cli.dsn) as connection:
        row = connection.execute("select key, admission from howdah.jobs").fetchone()
    assert row == ("tenant-7", "slot")
