"""Database name: which database this is, in words that hold neither user nor password."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote, urlsplit

from howdah.store.dsn_redaction import userinfo, without_password

EMBEDDED = "embedded PostgreSQL"
_PORT = "5432"


def database_name(dsn: str | None) -> str:
    """Name a database by its own name and its host: `shop on db.internal`.

    What `without_password` takes for a part of a password is not named.
    """
    if dsn is None:
        return EMBEDDED
    fields = _of_url(dsn) if "://" in dsn else _of_words(dsn)
    name = fields.get("dbname") or fields.get("database") or "the default database"
    hosts = fields.get("host", "")
    if not hosts or hosts.startswith(("/", "@")):
        return f"{name} on this machine"
    port = fields.get("port", _PORT)
    shown = hosts if port in ("", _PORT) or "," in hosts else f"{hosts}:{port}"
    return f"{name} on {shown}"


def _of_url(dsn: str) -> dict[str, str]:
    try:
        rest = without_password(dsn).partition("://")[2]
        parts = urlsplit(f"//{rest[userinfo(rest)[1] :]}")
        places, asked = parts.netloc, dict(parse_qsl(parts.query))
    except ValueError:  # such as a bracket that is left open
        return {}
    single = re.fullmatch(r"(\[[^\]]*\]|[^:,\[\]]*):(\d*)", places)
    fields = {"host": single[1], "port": single[2]} if single else {"host": places}
    fields["dbname"] = unquote(parts.path.lstrip("/"))
    return fields | {name: asked[name] for name in ("host", "port", "dbname") if asked.get(name)}


def _of_words(dsn: str) -> dict[str, str]:
    found = re.findall(r"(\w+)\s*=\s*('[^']*'|\S+)", without_password(dsn))
    return {name: value.strip("'") for name, value in found}
