"""DSN: which database a queue connects to.

In this order: the DSN of the caller, HOWDAH_DSN, DATABASE_URL, the embedded PostgreSQL.
A DSN is a URL, or libpq's keywords (`host=… dbname=…`), which are converted into a URL.
Several hosts in a DSN are a primary and its standbys: the one that takes writes is used.
A DSN may hold a password: show and log it only through `without_password`.
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
            f"{without_password(dsn)!r} is not a DSN: "
            "write postgresql://user:password@host:5432/database "
            "or host=… dbname=… user=… password=…"
        )
    return dsn


def find_listen_dsn(given_dsn: str | None, given: str | None) -> str | None:
    """Return the DSN to listen at, if it is another one.

    HOWDAH_LISTEN_DSN counts only if the DSN, too, comes from the environment.
    """
    if given:
        return find_dsn(given)
    if given_dsn is None and find_dsn() is not None:
        from_environment = os.environ.get("HOWDAH_LISTEN_DSN")
        return find_dsn(from_environment) if from_environment else None
    return None


def each_host(dsn: str) -> list[str]:
    """Split a DSN with several hosts into one DSN per host, each for a server that takes writes.

    The driver would try all hosts within one timeout: a first host that does not answer would
    use up the time of the second.
    """
    parts = urlsplit(dsn)
    user, at, netloc_hosts = parts.netloc.rpartition("@")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    hosts = (options.get("host") or netloc_hosts).split(",")
    if len(hosts) == 1:
        return [dsn]
    ports = options.get("port", "").split(",")
    options.setdefault("target_session_attrs", "read-write")
    dsns: list[str] = []
    for n, host in enumerate(hosts):
        host_options = dict(options)
        if "host" in options:
            host_options["host"] = host
        if "port" in options:
            host_options["port"] = ports[n if len(ports) > 1 else 0]
        netloc = parts.netloc if "host" in options else f"{user}{at}{host}"
        query = urlencode(host_options, safe="/", quote_via=quote)
        dsns.append(urlunsplit(parts._replace(netloc=netloc, query=query)))
    return dsns
