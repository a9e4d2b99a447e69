"""howdah enqueue: arguments and options become a job."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from howdah import Queue, State
from howdah.client.sync import SyncQueue
from tests.cli.support import Cli, started
from tests.support import Database


def test_it_prints_the_id_and_nothing_else(cli: Cli, jobs: SyncQueue) -> None:
    printed = cli.ok("enqueue", "resize", "path=a.png", "width=320")
    job = jobs.get(UUID(printed.strip()))
    assert (job.job_type, job.data) == ("resize", {"path": "a.png", "width": 320})
    assert (job.priority, job.max_attempts, job.status) == (100, 3, State.PENDING)


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("1", 1),
        ("1.5", 1.5),
        ("true", True),
        ("null", None),
        ('"1"', "1"),
        ('["a"]', ["a"]),
        ("a.png", "a.png"),
        ("", ""),
        ("a=b", "a=b"),
        ("NaN", "NaN"),
        ("01", "01"),
    ],
)
def test_a_value_is_json_if_it_can_be(cli: Cli, jobs: SyncQueue, typed: str, value: object) -> None:
    id = cli.json("enqueue", "any", f"value={typed}")["id"]
    assert jobs.get(id).data == {"value": value}


def test_data_comes_from_an_option_or_from_stdin(cli: Cli, jobs: SyncQueue) -> None:
    from_option = cli.ok("enqueue", "any", "--data", '{"a": 1, "b": 2}', "b=3").strip()
    assert jobs.get(from_option).data == {"a": 1, "b": 3}
    from_stdin = cli.ok("enqueue", "any", "--data", "-", input='{"a": "ü"}').strip()
    assert jobs.get(from_stdin).data == {"a": "ü"}


def test_options_reach_the_job(cli: Cli, jobs: SyncQueue) -> None:
    id = cli.ok("enqueue", "any", "--priority", "-7", "--max-attempts", 9, "--delay", "1h30m")
    job = jobs.get(id.strip())
    assert (job.priority, job.max_attempts) == (-7, 9)
    assert job.run_at is not None
    assert job.run_at - job.created_at == pytest.approx(
        timedelta(minutes=90), abs=timedelta(seconds=1)
    )
    at = jobs.get(cli.ok("enqueue", "any", "--run-at", "2030-01-31T18:00:00+02:00").strip()).run_at
    assert at == datetime(2030, 1, 31, 16, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "number"), [("explicit", 150), ("Discovered", 100), ("backfill", 30), ("150", 150)]
)
def test_priorities_have_names(cli: Cli, jobs: SyncQueue, name: str, number: int) -> None:
    assert jobs.get(cli.ok("enqueue", "any", "--priority", name).strip()).priority == number


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--delay", "10"], "write a number and a unit"),
        (["--delay", "-1s"], "write a number and a unit"),
        (["--delay", "99999999999d"], "is too long: write a shorter duration"),
        (["--delay", "1s", "--run-at", "2030-01-01T00:00:00Z"], "not both"),
        (["--run-at", "2030-01-01T00:00:00"], "no time zone"),
        (["--run-at", "tomorrow"], "not an instant"),
        (["--priority", "urgent"], "explicit, discovered, backfill"),
        (["--priority", "99999999999"], "priority must be between"),
        (["--max-attempts", "0"], "at least 1"),
        (["path"], "not KEY=VALUE"),
        (["=1"], "not KEY=VALUE"),
        (["a=1", "a=2"], "given twice"),
        (["--data", "{"], "it is not valid JSON"),
        (["--data", "[1]"], "the payload must be a JSON object"),
        (["a=\ud800"], "surrogate"),
    ],
)
def test_an_invalid_job_is_refused_and_nothing_is_written(
    cli: Cli, jobs: SyncQueue, arguments: list[str], expected: str
) -> None:
    refused = cli("enqueue", "any", *arguments)
    assert refused.exit_code == 2
    assert expected in " ".join(refused.stderr.split())
    assert jobs.jobs() == []


async def test_wait_prints_the_result_or_the_error(queue: Queue, dsn: str) -> None:
    @queue.job
    async def double(n: int) -> int:
        if n < 0:
            raise ValueError("only positive numbers")
        return n * 2

    async with queue.worker():
        for arguments, code, printed in (
            (("double", "n=21"), 0, "42\n"),
            (("double", "n=-1", "--max-attempts", 1), 1, ""),
        ):
            with started("enqueue", *arguments, "--wait", "--dsn", dsn) as waiting:
                stdout, stderr = await asyncio.to_thread(waiting.communicate, timeout=30)
            id, _, rest = stdout.partition("\n")
            assert (waiting.returncode, rest) == (code, printed)
            assert (await queue.get(id)).status.finished
            assert ("error: the job is failed: ValueError: only positive" in stderr) == (code == 1)


# ── checked against the types that workers have registered ──


@pytest.fixture
def db(dsn: str) -> Generator[Database]:
    """The database of the command line."""
    database = Database(dsn)
    yield database
    database.close()


RESIZE = """
    select howdah.register_job_types('w', '[{"name": "resize", "priority": 30, "max_attempts": 1,
        "signature": "x", "parameters": [
            {"name": "path", "type": "str", "required": true},
            {"name": "width", "type": "int", "required": false}]}, {"name": "undescribed"}]')
"""


def test_defaults_come_from_the_type(cli: Cli, jobs: SyncQueue, db: Database) -> None:
    db.execute(RESIZE)
    job = jobs.get(cli.ok("enqueue", "resize", "path=a.png").strip())
    assert (job.priority, job.max_attempts) == (30, 1)
    printed = cli.ok("enqueue", "resize", "path=a", "--priority", "100", "--max-attempts", "3")
    job = jobs.get(printed.strip())
    assert (job.priority, job.max_attempts) == (100, 3)


def test_an_unregistered_type_is_enqueued_with_a_warning(
    cli: Cli, jobs: SyncQueue, db: Database
) -> None:
    db.execute(RESIZE)
    done = cli("enqueue", "rezise", "path=a.png")
    assert done.exit_code == 0
    assert (
        "warning: no worker has ever registered 'rezise' (did you mean 'resize'?). The"
        in done.stderr
    )
    assert done.stderr.count("rezise") == 1
    assert jobs.get(done.stdout.strip()).job_type == "rezise"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the payload does not fit resize: missing 'path' (str)."),
        (["path=a", "widht=3"], "unknown 'widht' (did you mean 'width'?)"),
        (
            ["pth=a", "x=3"],
            "missing 'path' (str); unknown 'pth' (did you mean 'path'?); unknown 'x'",
        ),
    ],
)
def test_a_payload_that_no_live_worker_can_read_is_refused(
    cli: Cli, jobs: SyncQueue, db: Database, arguments: list[str], message: str
) -> None:
    db.execute(RESIZE)
    refused = cli("enqueue", "resize", *arguments)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert message in refused.stderr
    assert "--force" in refused.stderr
    assert db.value("select count(*) from howdah.jobs") == 0
    forced = cli("enqueue", "resize", *arguments, "--force")
    assert (forced.exit_code, "warning: " in forced.stderr) == (0, True)
    assert jobs.get(forced.stdout.strip()).job_type == "resize"


def test_without_a_live_worker_a_wrong_payload_is_only_a_warning(
    cli: Cli, jobs: SyncQueue, db: Database
) -> None:
    db.execute(RESIZE)
    db.execute("update howdah.job_types set last_seen_at = now() - interval '1 hour'")
    done = cli("enqueue", "resize", "x=1")
    assert (done.exit_code, "warning: the payload does not fit" in done.stderr) == (0, True)


@pytest.mark.parametrize("parameters", ["[1]", '["x"]', '[{"name": 3}]'])
def test_unknown_or_malformed_parameters_are_not_checked(
    cli: Cli, jobs: SyncQueue, db: Database, parameters: str
) -> None:
    db.execute(RESIZE)
    db.execute(f"update howdah.job_types set parameters = '{parameters}' where name = 'resize'")
    for name in ("resize", "undescribed"):
        assert cli("enqueue", name, "x=1").stderr == ""
