"""Log lines: which job a log record belongs to, and how howdah's own commands write it.

Comes before  cli/log.py   which chooses a format for a command
              child.py     which writes lines as its worker does

`JobLogFilter` is for everybody; the formats are those of `howdah worker` and `howdah web`.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Generator
from datetime import UTC, datetime

import msgspec

from howdah.run.context import current_job
from howdah.text.printable import clean, clean_json, log_line, without_surrogates

INDENT = "    "
FIELDS = ("job_id", "job_type", "attempt")


class JobLogFilter(logging.Filter):
    """Puts `job_id`, `job_type` and `attempt` on every record; None on those outside a job.

    Add it to a handler, not to a logger: a logger's filters do not see what its children log.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "job_id"):
            job = current_job()
            record.job_id = None if job is None else str(job.id)
            record.job_type = None if job is None else job.job_type
            record.attempt = None if job is None else job.attempt
        return True


class Plain(logging.Formatter):
    """`12:00:01 INFO    worker.started id=…`; a traceback stands below, set in from the left.

    What is logged inside a handler begins with its job: `[id=… type=resize attempt=1] …`.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", datefmt="%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """Keep what a message or an error says from looking like another line of the log."""
        message = record.getMessage()
        id, job_type, attempt = (getattr(record, name, None) for name in FIELDS)
        if id is not None and f"id={id} " not in message:
            message = f"[id={id} type={job_type} attempt={attempt}] {message}"
        record.message = message
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
        if getattr(record, "job_id", None) is not None:
            for name in FIELDS:
                value = getattr(record, name, None)
                line[name] = value if isinstance(value, int) else without_surrogates(str(value))
        for name, said in _below(self, record):
            line[name] = without_surrogates(said)
        return clean_json(msgspec.json.encode(line).decode())


def _below(formatter: logging.Formatter, record: logging.LogRecord) -> Generator[tuple[str, str]]:
    """List what stands below a message.

    `exc_text` only where there is no exception: else another handler may have written it.
    """
    if record.exc_info:
        yield "traceback", formatter.formatException(record.exc_info)
    elif record.exc_text:
        yield "traceback", record.exc_text.rstrip("\n")
    if record.stack_info:
        yield "stack", record.stack_info


class LogLines(msgspec.Struct, frozen=True):
    """How a process writes its log lines."""

    level: str
    as_json: bool

    def begin(self) -> None:
        """Send everything of this level and above to stderr, from now on."""
        global _lines
        _lines = self
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(Json() if self.as_json else Plain())
        handler.addFilter(JobLogFilter())
        logging.basicConfig(level=self.level.upper(), handlers=[handler], force=True)


_lines: LogLines | None = None


def log_lines() -> LogLines | None:
    """Return how this process writes its log lines; None where howdah does not write them."""
    return _lines
