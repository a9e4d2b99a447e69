"""A log line stays one line and steers no terminal, whatever a job, a payload or an error says."""

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


def steering(shown: str) -> list[str]:
    return [
        c for c in shown if c not in "\n\t" and unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl"}
    ]


def record(said: str) -> logging.LogRecord:
    """Make a record whose message, traceback and stack all say this."""
    try:
        raise ValueError(said)
    except ValueError:
        made = logging.LogRecord("x", logging.ERROR, "", 0, "job.fail %s", (said,), sys.exc_info())
    made.stack_info = said
    made.exc_text = said  # as another handler may have left it
    return made


@given(text)
@example(FORGED)
@example("\ud800")
@examples(100)
def test_a_plain_line_can_be_told_from_what_it_says(said: str) -> None:
    first, *below = Plain().format(record(said)).split("\n")
    assert re.match(r"\d\d:\d\d:\d\d ERROR   job.fail ", first)
    assert all(line.startswith("    ") for line in below)
    assert any("ValueError" in line for line in below)
    assert not steering("\n".join([first, *below]))


@given(text)
@example(FORGED)
@example("\ud800")
@examples(100)
def test_a_json_line_is_one_and_exact(said: str) -> None:
    line = Json().format(record(said))
    assert "\n" not in line
    assert "\t" not in line
    assert not steering(line)
    found = json.loads(line)
    if not any(unicodedata.category(char) == "Cs" for char in said):  # UTF-8 has no place for them
        assert found["message"] == f"job.fail {said}"
        assert found.get("stack", "") == said
        assert said.rstrip("\n") in found["traceback"]


APP = f"""
from howdah import Queue
queue = Queue()

@queue.job(max_attempts=1)
def fails():
    raise ValueError({FORGED!r})
"""


@pytest.mark.parametrize("options", [(), ("--log-json",)])
def test_a_worker_logs_a_hostile_error_on_its_line(
    tmp_path: Path, dsn: str, jobs: SyncQueue, options: tuple[str, ...]
) -> None:
    (tmp_path / "app.py").write_text(APP)
    jobs.enqueue("fails")
    with started("worker", "app:queue", "--dsn", dsn, *options, cwd=tmp_path) as worker:
        assert worker.stderr
        seen: list[str] = []
        for line in worker.stderr:
            seen.append(line)
            if "boom" in line:
                break
        worker.terminate()
        seen += worker.stderr.readlines()
    assert worker.returncode == 0
    assert not steering("".join(seen))
    assert not [line for line in seen if line.startswith("12:00:00 INFO    worker.stopped")]
    if options:
        assert all(json.loads(line) for line in seen)


def test_a_hostile_error_of_a_module_is_shown_clean(tmp_path: Path, dsn: str) -> None:
    (tmp_path / "app.py").write_text(f"raise ValueError({FORGED!r})")
    with started("worker", "app:queue", "--dsn", dsn, cwd=tmp_path) as worker:
        assert worker.stderr
        said = worker.stderr.read()
    assert "ValueError: boom" in said
    assert not steering(said)


def test_an_error_that_nobody_expected_is_shown_clean(tmp_path: Path) -> None:
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
    assert not steering(done.stderr)
