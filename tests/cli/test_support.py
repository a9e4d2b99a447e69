"""A command run inside a test does not change the process."""

from __future__ import annotations

import logging
import os

import pytest

from tests.cli.support import invoke


def test_a_worker_command_leaves_the_log_and_the_environment_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("HOWDAH_DSN", raising=False)
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    options = ("--dsn", "postgresql://127.0.0.1:1/x", "--log-level", "debug")
    refused = invoke("worker", "tests.no_such_app:queue", *options)
    assert "there is no module" in refused.stderr, "it came as far as setting up the log"
    assert (root.level, root.handlers) == (level, handlers)
    assert "HOWDAH_DSN" not in os.environ
    logging.getLogger("howdah").warning("recorded")
    assert "recorded" in caplog.text
