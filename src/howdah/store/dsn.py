"""Address: which database a queue talks to.

In this order: what the caller gave, HOWDAH_DSN, DATABASE_URL, the embedded PostgreSQL.
A DSN is a URL, or libpq's keywords (`host=… dbname=…`), which are turned into one.
A DSN with several hosts means a primary and its standbys: whichever takes writes is meant.
A DSN may carry a password, so nothing but `without_password` of it is ever shown or logged.
"""

from __future__ import annotations

import os
import re
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from howdah.errors import BadInput
from howdah.store.dsn_keywords import is_keywords, url_of
from howdah.store.dsn_redaction import without_password


def find_dsn(given: str | None = None) -> str | None:
    """Return the DSN to use; None means the embedded PostgreSQL."""
    dsn = given or os.environ.get("HOWDAH_DSN") or os.environ.get("DATABASE_URL")
    if not dsn:
        return None
    # SQLAlchemy writes the driver into the scheme: postgresql+psycopg://…
    dsn = re.sub(r"^(postgres(?:ql)?)\+\w+://", r"\1://", dsn.strip())
    if is_keywords(dsn):
        return url_of(dsn)
    if not re.match(r"^postgres(ql)?://", dsn):
        raise BadInput(
            "a DSN looks like postgresql://user:password@host:5432/database "
            "or host=… dbname=… user=… password=…, "
            f"not {without_password(dsn)!r}"
        )
    return dsn


def find_listen_dsn(given_dsn: str | None, given: str | None) -> str | None:
    """Return where to listen, if not at the same address.

    HOWDAH_LISTEN_DSN belongs to the address that the environment names, and to no other.
    """
    if given:
        return find_dsn(given)
    if given_dsn is None and find_dsn() is not None:
        named = os.environ.get("HOWDAH_LISTEN_DSN")
        return find_dsn(named) if named else None
    return None


def each_host(dsn: str) -> list[str]:
    """Split a DSN with several hosts into one per host, each asking for a server that takes writes.

    The driver would try them in turn within one limit of time, so that a first host that does
    not answer at all would keep it from ever trying the second.
    """
    parts = urlsplit(dsn)
    user, at, places = parts.netloc.rpartition("@")
    asked = dict(parse_qsl(parts.query, keep_blank_values=True))
    hosts = (asked.get("host") or places).split(",")
    if len(hosts) == 1:
        return [dsn]
    ports = asked.get("port", "").split(",")
    asked.setdefault("target_session_attrs", "read-write")
    found: list[str] = []
    for n, host in enumerate(hosts):
        own = dict(asked)
        if "host" in asked:
            own["host"] = host
        if "port" in asked:
            own["port"] = ports[n if len(ports) > 1 else 0]
        netloc = parts.netloc if "host" in asked else f"{user}{at}{host}"
        query = urlencode(own, safe="/", quote_via=quote)
        found.append(urlunsplit(parts._replace(netloc=netloc, query=query)))
    return found
