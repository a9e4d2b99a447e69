"""Logs: loggers whose handlers and filters cannot stop what they are told about.

A handler or a filter of the program's own may raise, for one job's text or for every line. A worker
must settle its jobs all the same, so such an error is printed, as `logging` prints its own, and
goes no further.
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
        """Log how an attempt ended: the record has its job, and the traceback as it is stored."""
        if not self.logger.isEnabledFor(level):
            return
        try:
            found = {"job_id": str(claim.id), "job_type": claim.job_type, "attempt": claim.attempt}
            file, line, function, _ = self.logger.findCaller(stacklevel=2)
            record = self.logger.makeRecord(
                self.logger.name, level, file, line, msg, args, None, function, found
            )
            if traceback is not None:
                record.exc_text = clean(traceback)  # where every formatter looks for it
            self.logger.handle(record)
        except Exception:
            _print_error()


def _print_error() -> None:
    if logging.raiseExceptions:
        with suppress(Exception):
            traceback.print_exc(file=sys.stderr)


def log_named(name: str) -> Log:
    return Log(logging.getLogger(name), {})
