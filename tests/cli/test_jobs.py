"""howdah jobs and howdah show: lists and details, for people and for programs."""

from __future__ import annotations

import json
import re
import shlex

from psycopg import connect

from howdah.client.sync import SyncQueue
from tests.cli.support import Cli, claim, completed, failed, invoke, on_a_terminal


def ids(printed: str) -> list[str]:
    return re.findall(r"^[0-9a-f-]{36}", printed, re.MULTILINE)


def test_newest_jobs_first_and_the_command_for_the_next_page(cli: Cli, jobs: SyncQueue) -> None:
    expected = [str(jobs.enqueue("mail", {"n": n}).id) for n in range(5)][::-1]
    page = cli("jobs", "--limit", 2, "--type", "mail")
    listed_ids = ids(page.stdout)
    while match := re.search(r"next page: howdah (.*)", page.stderr):
        page = invoke(*shlex.split(match.group(1)))
        listed_ids += ids(page.stdout)
    assert listed_ids == expected


def test_filters_are_by_state_type_and_worker(cli: Cli, jobs: SyncQueue) -> None:
    pending = jobs.enqueue("mail").id
    failed_id = failed(jobs, "report")
    done = completed(jobs, "report")
    jobs.enqueue("scan")
    (held,) = claim(jobs, "scan", worker_id="another")
    assert ids(cli.ok("jobs", "--status", "pending")) == [str(pending)]
    assert ids(cli.ok("jobs", "--status", "failed", "--status", "completed")) == [
        str(done),
        str(failed_id),
    ]
    assert ids(cli.ok("jobs", "--type", "mail", "--type", "scan")) == [str(held.id), str(pending)]
    assert ids(cli.ok("jobs", "--worker", "another")) == [str(held.id)]
    nothing = cli("jobs", "--type", "unknown")
    assert (nothing.exit_code, nothing.stdout, nothing.stderr) == (0, "", "no job matches\n")


def test_an_unknown_state_is_refused_and_the_states_are_listed(cli: Cli) -> None:
    refused = cli("jobs", "--status", "done")
    assert refused.exit_code == 2
    assert "'pending', 'claimed', 'running'" in refused.stderr


def test_an_id_is_a_full_uuid(cli: Cli) -> None:
    for command in (["show", "0190"], ["watch", "0190"], ["cancel", "0190"], ["requeue", "0190"]):
        refused = cli(*command)
        assert refused.exit_code == 2
        assert "'0190' is not a job id" in refused.stderr


def test_json_is_the_whole_job(cli: Cli, jobs: SyncQueue) -> None:
    id = failed(jobs, "report", "ValueError: no")
    (listed,) = cli.json("jobs")
    assert listed == cli.json("show", id)
    assert (listed["id"], listed["status"], listed["data"]) == (str(id), "failed", {})
    assert listed["errors"][0]["error"] == "ValueError: no"


def test_show_prints_every_field(cli: Cli, jobs: SyncQueue) -> None:
    jobs.enqueue("resize", {"path": "a.png"}, priority=150)
    (job,) = claim(jobs, "resize", worker_id="first")
    jobs.fail(job, "OSError: disk full")
    (job,) = claim(jobs, "resize", worker_id="second")
    jobs.complete(job, {"bytes": 1234})
    printed = " ".join(cli.ok("show", job.id).split())
    for fact in (
        f"id {job.id}",
        "type resize",
        "status completed",
        "priority 150 (explicit)",
        "progress 100%",
        "attempts 2 of 3",
        "worker second",
        'payload { "path": "a.png" }',
        'result { "bytes": 1234 }',
        "attempt 1 on first OSError: disk full",
    ):
        assert fact in printed


def test_show_has_the_traceback_of_each_attempt(cli: Cli, jobs: SyncQueue) -> None:
    @jobs.job(max_attempts=1)
    def explode() -> None:
        raise ValueError("boom")

    handle = explode.enqueue()
    with jobs.worker() as worker:
        worker.run_until_idle()
    printed = cli.ok("show", handle.id)
    assert "ValueError: boom" in printed
    assert "Traceback (most recent call last):" in printed
    assert 'raise ValueError("boom")' in printed


def test_text_from_the_database_is_printed_without_control_characters(
    cli: Cli, jobs: SyncQueue
) -> None:
    id = failed(jobs, "report", "\x1b[2J\x07 [bold]loud[/bold] :smile:\nsecond line")
    for printed in (
        cli.ok("jobs"),
        cli.ok("show", id),
        on_a_terminal("jobs", "--dsn", cli.dsn, COLUMNS="200"),
        on_a_terminal("show", id, "--dsn", cli.dsn),
        cli("watch", id).stdout,
    ):
        assert "\x1b[2J" not in printed
        assert "\x07" not in printed
        assert r"\x1b[2J\x07 [bold]loud[/bold] :smile:" in printed
    assert len(cli.ok("jobs").splitlines()) == 2


def test_colours_are_printed_only_on_a_terminal(cli: Cli, jobs: SyncQueue) -> None:
    id = failed(jobs, "report")
    for command in (["jobs"], ["show", str(id)], ["stats"], ["watch", str(id)]):
        assert "\x1b" not in cli(*command).output
        assert "\x1b[1;31m" in on_a_terminal(*command, "--dsn", cli.dsn)
        assert "\x1b[1;31m" not in on_a_terminal(*command, "--dsn", cli.dsn, NO_COLOR="1")


def test_json_has_no_colours_on_a_terminal_either(cli: Cli, jobs: SyncQueue) -> None:
    failed(jobs, "report")
    assert len(json.loads(on_a_terminal("jobs", "--json", "--dsn", cli.dsn))) == 1


def test_an_id_is_never_cut(cli: Cli, jobs: SyncQueue) -> None:
    id = jobs.enqueue("a_type_with_a_rather_long_name_that_takes_room" * 3).id
    assert str(id) in on_a_terminal("jobs", "--dsn", cli.dsn, COLUMNS="60")


def test_show_and_why_take_the_short_ids_that_lists_show(cli: Cli, jobs: SyncQueue) -> None:
    id = jobs.enqueue("mail", delay=3600).id
    for part in (str(id)[-8:], f"…{str(id)[-8:]}", str(id)[:30]):
        assert cli.json("show", part)["id"] == str(id)
        assert cli.json("why", part)["job_id"] == str(id)
    for command in ("show", "why"):
        missing = cli(command, "…ffffff")
        assert missing.exit_code == 3
        assert "ends in" in missing.stderr
    with connect(cli.dsn, autocommit=True) as other:
        for n in (1, 2):
            other.execute(
                "insert into howdah.jobs (id, job_type) values (%s, 'mail')",
                [f"01980f2e-7c1a-7d3e-9b1f-2f4e5a6b7c8{n}"],
            )
    for command in ("show", "why"):
        several = cli(command, "01980f2e")
        assert several.exit_code == 2
        assert "01980f2e-7c1a-7d3e-9b1f-2f4e5a6b7c81" in several.stderr


def test_jobs_and_stats_are_filtered_by_queue(cli: Cli, jobs: SyncQueue, dsn: str) -> None:
    with connect(dsn, autocommit=True) as connection:
        connection.execute(
            """select howdah.register_job_types('me', '[{"name": "resize", "queue": "media"}]')"""
        )
    resize, other = str(jobs.enqueue("resize").id), str(jobs.enqueue("other").id)
    assert ids(cli.ok("jobs", "--queue", "media")) == [resize]
    assert ids(cli.ok("jobs", "--queue", "media,default")) == [other, resize]
    assert ids(cli.ok("jobs", "--queue", "media", "--queue", "default")) == [other, resize]
    counts = cli.ok("stats", "--queue", "media")
    assert re.search(r"^resize +media ", counts, re.MULTILINE)
    assert "other" not in counts
    assert cli.json("stats")["queues"] == {"resize": "media", "other": "default"}
    assert set(cli.json("stats", "--queue", "default")["jobs"]) == {"other"}
    for command in ("jobs", "stats"):
        refused = cli(command, "--queue", "medai")
        assert refused.exit_code == 2
        assert "no job type has the queue 'medai' (did you mean 'media'?)" in refused.stderr


def admit(cli: Cli) -> None:
    with connect(cli.dsn, autocommit=True) as other:
        other.execute("select howdah.upkeep()")


def test_jobs_are_found_by_key_by_limit_and_by_what_they_wait_for(
    cli: Cli, jobs: SyncQueue
) -> None:
    cli.ok("limits", "api", "--at-once", 1)
    with connect(cli.dsn, autocommit=True) as other:
        other.execute("select howdah.set_type_limit('call', null, p_limit => 'api')")
    in_line, waits = [str(jobs.enqueue("mail", key="tenant-7").id) for _ in range(2)]
    called, calls = [str(jobs.enqueue("call").id) for _ in range(2)]
    later = str(jobs.enqueue("mail", delay=3600).id)
    admit(cli)
    for options, expected in (
        (("--key", "tenant-7"), [waits, in_line]),
        (("--type", "mail", "--key", "tenant-7", "--waits-for", "key"), [waits]),
        (("--limited-by", "api"), [calls, called]),
        (("--waits-for", "time", "--waits-for", "limit"), [later, calls]),
        (("--key", "tenant-8"), []),
    ):
        assert ids(cli("jobs", *options).stdout) == expected, options
    printed = cli.ok("jobs", "--type", "mail")
    assert re.search(rf"{waits} .* key +tenant-7$", printed, re.MULTILINE)
    assert re.search(rf"{later} .* time$", printed, re.MULTILINE)
    jobs.enqueue("plain")
    assert "WAITS FOR" not in cli.ok("jobs", "--type", "plain")
    page = cli("jobs", "--limited-by", "api", "--waits-for", "limit", "--limit", 1)
    assert "howdah jobs --limited-by api --waits-for limit --dsn" in page.stderr
    refused = cli("jobs", "--waits-for", "godot")
    assert refused.exit_code == 2
    assert "'time', 'retry', 'key', 'limit', 'worker'" in refused.stderr


def test_show_says_what_a_job_waits_for(cli: Cli, jobs: SyncQueue) -> None:
    first, second = [jobs.enqueue("mail", key="tenant-7").id for _ in range(2)]
    later = jobs.enqueue("mail", delay=3600).id
    admit(cli)
    printed = " ".join(cli.ok("show", second).split())
    assert f"key tenant-7 arrival {jobs.get(second).arrival:,} waits for a slot of its key. " in (
        printed
    )
    assert "It waits for the key tenant-7: 1 of 1 slots are taken; it is next." in printed
    assert "waits for a worker" in " ".join(cli.ok("show", first).split())
    assert "waits for its time" in " ".join(cli.ok("show", later).split())
    shown = cli.json("show", second)
    assert (shown["key"], shown["admission"], shown["waits_for"]) == ("tenant-7", "slot", "key")


def test_keys_are_counted(cli: Cli, jobs: SyncQueue) -> None:
    nothing = cli("keys", "mail")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert nothing.stderr == "no job of mail holds a slot of a key or waits for one\n"
    for key in ("a", "b", "b", "b", "\u202eb[bold]"):
        jobs.enqueue("mail", key=key)
    admit(cli)
    counted = cli("keys", "mail")
    assert counted.stderr == "a key has 1 slot\n"
    assert [line.split() for line in counted.stdout.splitlines()] == [
        ["HOLDING", "WAITING", "KEY"],
        ["1", "2", "b"],
        ["1", "0", "a"],
        ["1", "0", "\\u202eb[bold]"],
    ]
    assert "there are more keys: --limit 10" in cli("keys", "mail", "--limit", 1).stderr
    assert cli.json("keys", "mail")["keys"][0]["waiting"] == {"jobs": 2, "more": False}
