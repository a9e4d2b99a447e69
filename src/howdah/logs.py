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


class Log(logging.LoggerAdapter[logging.Logger]):
    """A logger that never raises."""

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        try:
            self.logger.log(level, msg, *args, stacklevel=2, **kwargs)
        except Exception:
            if logging.raiseExceptions:
                with suppress(Exception):
                    traceback.print_exc(file=sys.stderr)


def log_named(name: str) -> Log:
    return Log(logging.getLogger(name), {})
