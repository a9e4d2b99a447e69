"""Log: how a worker's log lines look, for people or for machines. On stderr."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime

import click
import msgspec

from howdah.cli.options import Decorated
from howdah.cli.words import clean

LEVELS = ("debug", "info", "warning", "error")


def log_level_option(command: Decorated) -> Decorated:
    """Give a command `--log-level`."""
    levels = click.Choice(LEVELS)
    return click.option("--log-level", type=levels, default="info", show_default=True)(command)


def log_json_option(command: Decorated) -> Decorated:
    """Give a command `--log-json`."""
    said = "Log one JSON object per line."
    return click.option("--log-json", is_flag=True, help=said)(command)


class Plain(logging.Formatter):
    """`12:00:01 INFO    worker.started id=…`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", datefmt="%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Keep a message on its line: an error's text must not look like another line."""
        return clean(super().formatMessage(record)).replace("\n", "\\n")


class Json(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def log_to_stderr(level: str, as_json: bool) -> None:
    """Send everything of this level and above to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Json() if as_json else Plain())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
