"""Environment: the environment variables of the server and its helpers.

Only the variables in PASSED are passed on. So a secret of the caller (a token, a DSN) reaches no
process that lives longer than the caller or runs as another user. PG… variables are not passed
either: they would change what PostgreSQL does. The language is always C: our code reads the log.
"""

from __future__ import annotations

import os

PASSED = (
    "PATH",
    "TZ",  # initdb takes the server's time zone from it
    "LD_LIBRARY_PATH",  # these two: for a PostgreSQL or a Python outside the common folders
    "DYLD_LIBRARY_PATH",
)


def environment() -> dict[str, str]:
    """Return the variables for a process of the embedded server."""
    own = {name: os.environ[name] for name in PASSED if name in os.environ}
    return {**own, "LC_ALL": "C"}
