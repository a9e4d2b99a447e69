"""Address: which database a queue talks to.

In this order: what the caller gave, HOWDAH_DSN, DATABASE_URL, the embedded PostgreSQL.
A DSN may carry a password, so nothing but `without_password` of it is ever shown or logged.
"""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

from howdah.errors import BadInput


def find_dsn(given: str | None = None) -> str | None:
    """Return the DSN to use; None means the embedded PostgreSQL."""
    dsn = given or os.environ.get("HOWDAH_DSN") or os.environ.get("DATABASE_URL")
    if not dsn:
        return None
    # SQLAlchemy writes the driver into the scheme: postgresql+psycopg://…
    dsn = re.sub(r"^(postgres(?:ql)?)\+\w+://", r"\1://", dsn.strip())
    if not re.match(r"^postgres(ql)?://", dsn):
        raise BadInput(
            "a DSN looks like postgresql://user:password@host:5432/database, "
            f"not {without_password(dsn)!r}"
        )
    return dsn


def without_password(dsn: str) -> str:
    """Return the DSN as it may be shown: passwords in either place replaced by ***."""
    shown = re.sub(r"(?i)(\bpassword\s*=\s*)('[^']*'|[^\s&]+)", r"\1***", dsn)
    try:
        password = urlsplit(dsn).password
    except ValueError:
        password = None
    if password or re.search(r"://[^@/]*:[^@/]*@", shown):
        shown = re.sub(r"(://[^:@/]*):.*@", r"\1:***@", shown)
    return shown
