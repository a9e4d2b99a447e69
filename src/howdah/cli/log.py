"""Log: the options of commands that write a log to stderr."""

from __future__ import annotations

import click

from howdah.cli.options import Decorated
from howdah.run.job_logging import LogLines

LEVELS = ("debug", "info", "warning", "error")


def log_level_option(command: Decorated) -> Decorated:
    """Add `--log-level` to a command."""
    return click.option(
        "--log-level",
        type=click.Choice(LEVELS),
        default="info",
        show_default=True,
        help="The least level that is logged.",
    )(command)


def log_json_option(command: Decorated) -> Decorated:
    """Add `--log-json` to a command."""
    help = "Log one JSON object per line."
    return click.option("--log-json", is_flag=True, help=help)(command)


def log_to_stderr(level: str, as_json: bool) -> None:
    """Log everything of this level and above to stderr."""
    LogLines(level, as_json).begin()
