"""A log line stays one line without control characters, whatever a job or an error contains."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from howdah.client.sync import SyncQueue
from howdah.run.job_logging import Json, Plain
from tests.cli.support import started
from tests.fuzz.budget import examples

FORGED = "boom\n12:00:00 INFO    worker.stopped id=forged\x1b[2J\x85\x9b31m\u2028\u202e"

text = st.text(st.characters() | st.sampled_from(FORGED) | st.sampled_from("\ud800\udcff"))


def control_characters(text: str) -> list[str]:
    return [
        c for c in text if c not in "\n\t" and unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl"}
    ]


def record(text: str) -> logging.LogRecord:
    """Make a record whose message, traceback and stack all contain this."""
    try:
        raise ValueError(text)
    except ValueError:
        log_record = logging.LogRecord(
            "x", logging.ERROR, "", 0, "job.fail %s", (text,), sys.exc_info()
        )
    log_record.stack_info = text
    log_record.exc_text = text  # as another handler may have left it
    return log_record


@given(text)
@example(FORGED)
@example("\ud800")
@examples(100)
def test_text_cannot_forge_a_plain_line(text: str) -> None:
    first, *below = Plain().format(record(text)).split("\n")
    assert re.match(r"\d\d:\d\d:\d\d ERROR   job.fail ", first)
    assert all(line.startswith("    ") for line in below)
    assert any("ValueError" in line for line in below)
    assert not control_characters("\n".join([first, *below]))


@given(text)
@example(FORGED)
@example("\ud800")
@examples(100)
def test_a_json_line_is_one_line_with_the_exact_text(text: str) -> None:
    line = Json().format(record(text))
    assert "\n" not in line
    assert "\t" not in line
    assert not control_characters(line)
    entry = json.loads(line)
    if not any(unicodedata.category(char) == "Cs" for char in text):  # UTF-8 cannot encode them
        assert entry["message"] == f"job.fail {text}"
        assert entry.get("stack", "") == text
        assert text.rstrip("\n") in entry["traceback"]


APP = f"""
from howdah import Queue
queue = Queue()

@queue.job(max_attempts=1)
def fails():
    raise ValueError({FORGED!r})
"""


@pytest.mark.parametrize("options", [(), ("--log-json",)])
def test_a_worker_logs_a_hostile_error_without_control_characters(
    tmp_path: Path, dsn: str, jobs: SyncQueue, options: tuple[str, ...]
) -> None:
    (tmp_path / "app.py").write_text(APP)
    jobs.enqueue("fails")
    with started("worker", "app:queue", "--dsn", dsn, *options, cwd=tmp_path) as worker:
        assert worker.stderr
        logged: list[str] = []
        for line in worker.stderr:
            logged.append(line)
            if "boom" in line:
                break
        worker.terminate()
        logged += worker.stderr.readlines()
    assert worker.returncode == 0
    assert not control_characters("".join(logged))
    assert not [line for line in logged if line.startswith("12:00:00 INFO    worker.stopped")]
    if options:
        assert all(json.loads(line) for line in logged)


def test_a_hostile_error_of_a_module_is_printed_without_control_characters(
    tmp_path: Path, dsn: str
) -> None:
    (tmp_path / "app.py").write_text(f"raise ValueError({FORGED!r})")
    with started("worker", "app:queue", "--dsn", dsn, cwd=tmp_path) as worker:
        assert worker.stderr
        printed = worker.stderr.read()
    assert "ValueError: boom" in printed
    assert not control_characters(printed)


def test_an_unexpected_error_is_printed_without_control_characters(tmp_path: Path) -> None:
    script = f"""
import sys
from howdah.cli import commands
def broken(*a, **k): raise ValueError({FORGED!r})
commands.howdah = broken
sys.argv = ["howdah"]
commands.main()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1
    assert "ValueError: boom" in done.stderr
    assert not control_characters(done.stderr)
