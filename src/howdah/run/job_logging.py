"""Job logging: put the job on log records, and format the log lines of howdah's commands.

Comes before  cli/log.py              which chooses the format of a command
              process/child_main.py   which writes lines as its worker does

`JobLogFilter` is public. The formats are those of `howdah worker` and `howdah web`.
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
    """Puts `job_id`, `job_type` and `attempt` on every record; outside a job they are None.

    Add it to a handler, not to a logger: a logger's filters do not see records of its children.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "job_id"):
            job = current_job()
            record.job_id = None if job is None else str(job.id)
            record.job_type = None if job is None else job.job_type
            record.attempt = None if job is None else job.attempt
        return True


class Plain(logging.Formatter):
    """`12:00:01 INFO    worker.started id=…`, with an indented traceback below.

    A line from inside a handler begins with its job: `[id=… type=resize attempt=1] …`.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", datefmt="%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """Format a record; text of a job cannot look like another line of the log."""
        message = record.getMessage()
        id, job_type, attempt = (getattr(record, name, None) for name in FIELDS)
        if id is not None and f"id={id} " not in message:
            message = f"[id={id} type={job_type} attempt={attempt}] {message}"
        record.message = message
        record.asctime = self.formatTime(record, self.datefmt)
        details = [clean(text).replace("\n", f"\n{INDENT}") for _, text in _details(self, record)]
        return f"\n{INDENT}".join([log_line(self.formatMessage(record)), *details])


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
        for name, text in _details(self, record):
            line[name] = without_surrogates(text)
        return clean_json(msgspec.json.encode(line).decode())


def _details(formatter: logging.Formatter, record: logging.LogRecord) -> Generator[tuple[str, str]]:
    """Yield the traceback and the stack of a record.

    `exc_text` counts only without an exception: otherwise another formatter has cached it there.
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
        """Write all records of this level and above to stderr."""
        global _lines
        _lines = self
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(Json() if self.as_json else Plain())
        handler.addFilter(JobLogFilter())
        logging.basicConfig(level=self.level.upper(), handlers=[handler], force=True)


_lines: LogLines | None = None


def log_lines() -> LogLines | None:
    """Return how this process writes its log lines; None if howdah does not write them."""
    return _lines
