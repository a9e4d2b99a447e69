"""For any text in the database, no command prints control sequences, and --json is exact.

Each example puts hostile text wherever a client of the database can put text: types, payloads,
results, errors, stages, worker ids, events, reasons. Then every command that shows it is run.
"""

from __future__ import annotations

import json
import unicodedata
from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from howdah.cli.commands import SECTIONS
from tests.cli.support import invoke
from tests.fuzz.budget import examples

# Commands that show no text from the database, or that start a program; each with its reason.
SHOW_NONE = {
    "demo": "on a database of its own",
    "dev": "shows the log of the worker: see test_log.py",
    "worker": "logs: see test_log.py",
    "web": "logs: see test_log.py",
    "top": "see tests/top/test_harmless.py",
    "enqueue": "prints an id; --wait prints as `show --json` does",
    "cancel": "prints ids and states",
    "requeue": "prints ids and states",
    "resume": "prints what was typed",
    "signal": "prints what was typed",
    "install": "prints numbers",
    "sql": "prints our own files",
    "pg": "prints paths of the embedded server",
    "bench": "prints measures",
    "completion": "prints our own words",
}
SHOWN = {
    *(
        "jobs",
        "show",
        "watch",
        "why",
        "stats",
        "doctor",
        "metrics",
        "pause",
        "recover",
        "limits",
        "keys",
        "schedules",
    ),
}

HOSTILE = "\x1b[2J\x07\r\b\x7f\x85\x9b31m\u202eback\u2028\u2066\u200b\ufeff\U000e0041\t\n12:00 INFO"

character = st.characters(exclude_characters="\0", exclude_categories=["Cs"]) | st.sampled_from(
    HOSTILE
)
text = st.text(character, min_size=1, max_size=30)


def is_control(char: str) -> bool:
    return char not in "\n\t" and unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"}


def type_of(text: str) -> str:
    """Remove the characters that the name of a type may not contain."""
    return "".join(char for char in text if unicodedata.category(char) != "Cc") or "x"


def store_everywhere(dsn: str, text: str) -> UUID:
    """Store this text in every text column; return the id of a failed job."""
    job_type = type_of(text)
    entry = {"attempt": 1, "error": text, "traceback": text, "worker_id": text}
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("truncate howdah.jobs, howdah.job_events, howdah.paused_types")
        connection.execute("truncate howdah.workers, howdah.limits, howdah.type_limits")
        connection.execute("truncate howdah.job_steps, howdah.schedules")
        row = connection.execute(
            "insert into howdah.jobs (job_type, data, result, status, last_error, errors,"
            " worker_id, current_stage, completed_at, attempts, events_count)"
            " values (%s, %s, %s, 'failed', %s, %s, %s, %s, now(), 1, 1) returning id",
            [job_type, Jsonb({text: [text]}), Jsonb(text), text, Jsonb([entry]), text, text],
        ).fetchone()
        assert row is not None
        connection.execute(
            "insert into howdah.job_events (job_id, number, kind, data, attempt, created_at, day)"
            " values (%s, 1, %s, %s, 1, now(), current_date)",
            [row[0], text, Jsonb({text: text})],
        )
        connection.execute(
            "insert into howdah.job_steps"
            " (job_id, kind, name, number, function, attempt, started_at, ended_at, result)"
            " values (%s, 'step', %s, 1, %s, 1, now(), now(), %s)",
            [row[0], text, text, Jsonb(text)],
        )
        connection.execute(
            "select howdah.set_schedule(%s, %s, %s, '0 3 * * *', p_by => %s)",
            [job_type, job_type, Jsonb({text: text}), text],
        )
        connection.execute(
            "update howdah.schedules set problem = %(text)s, paused_by = %(text)s, tz = %(text)s,"
            " cron = %(text)s",
            {"text": text},
        )
        connection.execute(
            "insert into howdah.jobs (job_type, status, worker_id, current_stage, claimed_at,"
            " started_at, attempts) values (%s, 'running', %s, %s, now() - interval '1 day',"
            " now() - interval '1 day', 1)",
            [job_type, text, text],
        )
        connection.execute("insert into howdah.jobs (job_type) values (%s)", [job_type])
        connection.execute("select howdah.pause(%s, %s)", [job_type, text])
        limit = job_type.replace(":", "") or "x"
        connection.execute("select howdah.set_limit(%s, 1)", [limit])
        connection.execute("update howdah.limits set changed_by = %s", [text])
        connection.execute("select howdah.set_type_limit(%s, 1, p_limit => %s)", [job_type, limit])
        for _ in range(2):
            connection.execute(
                "insert into howdah.jobs (job_type, key) values (%s, %s)", [job_type, job_type]
            )
    return row[0]


def commands(id: UUID, job_type: str) -> list[tuple[str, ...]]:
    return [
        ("jobs",),
        ("show", str(id)),
        ("watch", str(id)),
        ("why", str(id)),
        ("why", job_type),
        ("stats",),
        ("doctor",),
        ("pause",),
        ("recover",),
        ("limits",),
        ("keys", job_type),
        ("schedules",),
        ("schedules", "next"),
        ("jobs", "--waits-for", "key", "--key", job_type),
    ]


@given(text)
@example(HOSTILE)
@examples(15)
def test_no_command_prints_control_characters(shared_dsn: str, stored: str) -> None:
    id = store_everywhere(shared_dsn, stored)
    for args in commands(id, type_of(stored)):
        if args[-1].startswith("-"):
            continue
        for more in (("--json",), ()):
            output = invoke("--dsn", shared_dsn, *args, *more).output
            assert not [char for char in output if is_control(char)], (args, more, output)


@given(text)
@example(HOSTILE)
@examples(15)
def test_json_output_equals_the_stored_text(shared_dsn: str, stored: str) -> None:
    id = store_everywhere(shared_dsn, stored)
    job: Any = json.loads(invoke("--dsn", shared_dsn, "show", str(id), "--json").stdout)
    assert job["data"] == {stored: [stored]}
    assert job["result"] == stored
    assert job["last_error"] == stored
    assert job["errors"][0]["traceback"] == stored
    lines = invoke("--dsn", shared_dsn, "watch", str(id), "--json").stdout.splitlines()
    (emitted,) = [event for event in map(json.loads, lines) if event["event"] == "emitted"]
    assert emitted["kind"] == stored
    assert emitted["data"] == {stored: stored}


def test_metrics_are_exact_in_a_pipe_and_harmless_on_a_terminal(
    shared_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_everywhere(shared_dsn, "a\u2028b\u202ec")
    assert "a\u2028b\u202ec" in invoke("--dsn", shared_dsn, "metrics").stdout
    monkeypatch.setattr("howdah.cli.output.on_terminal", lambda: True)
    output = invoke("--dsn", shared_dsn, "metrics").stdout
    assert "a\\u2028b\\u202ec" in output
    assert not [char for char in output if is_control(char)]


def test_every_command_is_tried_or_shows_no_text() -> None:
    known = {str(command.name) for section in SECTIONS.values() for command in section}
    assert known == SHOWN | SHOW_NONE.keys()
    assert not SHOWN & SHOW_NONE.keys()
