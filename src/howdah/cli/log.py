"""Log: the options of commands that write log lines, for people or for machines. On stderr."""

from __future__ import annotations

import click

from howdah.cli.options import Decorated
from howdah.run.job_logging import LogLines

LEVELS = ("debug", "info", "warning", "error")


def log_level_option(command: Decorated) -> Decorated:
    """Give a command `--log-level`."""
    levels = click.Choice(LEVELS)
    return click.option("--log-level", type=levels, default="info", show_default=True)(command)


def log_json_option(command: Decorated) -> Decorated:
    """Give a command `--log-json`."""
    said = "Log one JSON object per line."
    return click.option("--log-json", is_flag=True, help=said)(command)


def log_to_stderr(level: str, as_json: bool) -> None:
    """Send everything of this level and above to stderr."""
    LogLines(level, as_json).begin()
