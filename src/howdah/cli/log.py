"""Log: how a worker's log lines look, for people or for machines. On stderr."""

from __future__ import annotations

import logging
import sys
from collections.abc import Generator
from datetime import UTC, datetime

import click
import msgspec

from howdah.cli.options import Decorated
from howdah.printable import clean, clean_json, log_line, without_surrogates

INDENT = "    "
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
    """`12:00:01 INFO    worker.started id=…`; a traceback stands below, set in from the left."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", datefmt="%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """Keep what a message or an error says from looking like another line of the log."""
        record.message = record.getMessage()
        record.asctime = self.formatTime(record, self.datefmt)
        below = [clean(said).replace("\n", f"\n{INDENT}") for _, said in _below(self, record)]
        return f"\n{INDENT}".join([log_line(self.formatMessage(record)), *below])


class Json(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": without_surrogates(record.getMessage()),
        }
        for name, said in _below(self, record):
            line[name] = without_surrogates(said)
        return clean_json(msgspec.json.encode(line).decode())


def _below(formatter: logging.Formatter, record: logging.LogRecord) -> Generator[tuple[str, str]]:
    """List what stands below a message. Not `exc_text`: another handler may have written it."""
    if record.exc_info:
        yield "traceback", formatter.formatException(record.exc_info)
    if record.stack_info:
        yield "stack", record.stack_info


def log_to_stderr(level: str, as_json: bool) -> None:
    """Send everything of this level and above to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Json() if as_json else Plain())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
