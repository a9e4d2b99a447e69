"""Environment: which of our variables the server and its helpers get.

Comes before  root.py and reaper.py, which start processes with it

The list names what is passed, so a secret of the caller (a token, a DSN) goes to no process
that lives longer than the caller or runs as another user. PG… variables would steer
PostgreSQL and are not passed either. The language is always C: our code reads the log.
"""

from __future__ import annotations

import os

PASSED = (
    "PATH",
    "TZ",  # initdb writes the server's time zone from it
    "LD_LIBRARY_PATH",  # a PostgreSQL or a Python outside the usual folders may need these two
    "DYLD_LIBRARY_PATH",
)


def environment() -> dict[str, str]:
    """Return the variables that a process of the embedded server gets."""
    own = {name: os.environ[name] for name in PASSED if name in os.environ}
    return {**own, "LC_ALL": "C"}
