"""Safe logging: loggers that never raise.

A logging handler or filter of the user's program may raise, for one job's text or for every line.
The worker must still settle its jobs. So such an error is printed to stderr, as `logging` does with
its own errors, and is not raised.
"""

from __future__ import annotations

import logging
import sys
import traceback
from contextlib import suppress
from typing import Any

from howdah.job import Claim
from howdah.text.printable import clean


class Log(logging.LoggerAdapter[logging.Logger]):
    """A logger that never raises."""

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        try:
            self.logger.log(level, msg, *args, stacklevel=2, **kwargs)
        except Exception:
            _print_error()

    def ended(
        self, level: int, claim: Claim, traceback: str | None, msg: str, *args: object
    ) -> None:
        """Log the end of an attempt: the record has the job, and the stored traceback."""
        if not self.logger.isEnabledFor(level):
            return
        try:
            extra = {"job_id": str(claim.id), "job_type": claim.job_type, "attempt": claim.attempt}
            file, line, function, _ = self.logger.findCaller(stacklevel=2)
            record = self.logger.makeRecord(
                self.logger.name, level, file, line, msg, args, None, function, extra
            )
            if traceback is not None:
                record.exc_text = clean(traceback)  # every formatter prints this attribute
            self.logger.handle(record)
        except Exception:
            _print_error()


def _print_error() -> None:
    if logging.raiseExceptions:
        with suppress(Exception):
            traceback.print_exc(file=sys.stderr)


def log_named(name: str) -> Log:
    return Log(logging.getLogger(name), {})
