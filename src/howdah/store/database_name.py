"""Database name: the name of a database for people, without user and password."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote, urlsplit

from howdah.store.dsn_redaction import userinfo, without_password

EMBEDDED = "embedded PostgreSQL"
_PORT = "5432"


def database_name(dsn: str | None) -> str:
    """Return name and host of a database: `shop on db.internal`.

    Text that `without_password` hides is left out here, too.
    """
    if dsn is None:
        return EMBEDDED
    fields = _from_url(dsn) if "://" in dsn else _from_keywords(dsn)
    name = fields.get("dbname") or fields.get("database") or "the default database"
    hosts = fields.get("host", "")
    if not hosts or hosts.startswith(("/", "@")):
        return f"{name} on this machine"
    port = fields.get("port", _PORT)
    shown = hosts if port in ("", _PORT) or "," in hosts else f"{hosts}:{port}"
    return f"{name} on {shown}"


def _from_url(dsn: str) -> dict[str, str]:
    try:
        rest = without_password(dsn).partition("://")[2]
        parts = urlsplit(f"//{rest[userinfo(rest)[1] :]}")
        hosts, options = parts.netloc, dict(parse_qsl(parts.query))
    except ValueError:  # for example an open bracket
        return {}
    single = re.fullmatch(r"(\[[^\]]*\]|[^:,\[\]]*):(\d*)", hosts)
    fields = {"host": single[1], "port": single[2]} if single else {"host": hosts}
    fields["dbname"] = unquote(parts.path.lstrip("/"))
    given = {name: options[name] for name in ("host", "port", "dbname") if options.get(name)}
    return fields | given


def _from_keywords(dsn: str) -> dict[str, str]:
    pairs = re.findall(r"(\w+)\s*=\s*('[^']*'|\S+)", without_password(dsn))
    return {name: value.strip("'") for name, value in pairs}
