"""DSN keywords: convert a DSN in libpq's keywords (`host=… dbname=…`) into a URL.

The rules are libpq's. White space separates the pairs and may surround `=`. A value that is empty
or contains white space is written in single quotes. A backslash escapes the next character. No
error message quotes a value, because it may be a password.
"""

from __future__ import annotations

import re
from urllib.parse import quote, urlencode

from howdah.errors import BadInput

_KEPT = frozenset(
    [
        "passfile",
        "service",
        "sslmode",
        "sslcert",
        "sslkey",
        "sslrootcert",
        "sslcrl",
        "sslpassword",
        "sslnegotiation",
        "ssl_min_protocol_version",
        "ssl_max_protocol_version",
        "target_session_attrs",
        "krbsrvname",
        "gsslib",
        "application_name",
        "options",
        "client_encoding",
    ]
)
_URL_PARTS = frozenset(("host", "hostaddr", "port", "user", "password", "dbname"))
# Options of libpq that asyncpg does not have.
_IGNORED = frozenset(
    [
        "connect_timeout",
        "fallback_application_name",
        "keepalives",
        "keepalives_idle",
        "keepalives_interval",
        "keepalives_count",
        "tcp_user_timeout",
        "gssencmode",
        "gssdelegation",
        "channel_binding",
        "requirepeer",
        "require_auth",
        "load_balance_hosts",
        "sslcompression",
        "sslsni",
        "sslcrldir",
        "sslcertmode",
        "replication",
    ]
)
_HINT = (
    "write it as host=db dbname=app user=me password='with spaces', "
    "or as postgresql://user:password@host:5432/database"
)
_NAME = re.compile(r"\s*([^\s=]+)\s*")
_CHARACTER = re.compile(r"\\(.)|([^\\])", re.DOTALL)
_PLAIN_HOST = re.compile(r"[A-Za-z0-9._-]+\Z")


def is_keywords(dsn: str) -> bool:
    """Whether this is meant as keywords: it begins with `name=`."""
    return re.match(r"\s*\w+\s*=", dsn) is not None


def url_of(dsn: str) -> str:
    """Return the URL with the same meaning."""
    values = {name: value for name, value in _parse(dsn).items() if value}
    unknown = values.keys() - _KEPT - _URL_PARTS - _IGNORED
    if unknown:
        names = ", ".join(_safe_names(list(values), unknown))
        raise BadInput(f"this DSN has unknown keywords ({names}): {_HINT}")
    host, port = values.get("host") or values.get("hostaddr") or "", values.get("port") or ""
    if not re.fullmatch(r"[\d,]*", port):
        raise BadInput(f"the port in this DSN is not a number: {_HINT}")
    options = {name: value for name, value in values.items() if name in _KEPT}
    user = quote(values.get("user", ""), safe="")
    if "password" in values:
        user += ":" + quote(values["password"], safe="")
    host_and_port = ""
    if _PLAIN_HOST.match(host) and "," not in port:
        host_and_port = f"{host}:{port}" if port else host
    else:  # a folder of sockets, an IPv6 address, several hosts
        options |= {name: value for name, value in (("host", host), ("port", port)) if value}
    netloc = f"{user}@{host_and_port}" if user else host_and_port
    query = urlencode(options, safe="/", quote_via=quote)
    name = quote(values.get("dbname", ""), safe="")
    return f"postgresql://{netloc}/{name}{'?' if query else ''}{query}"


def _safe_names(names: list[str], unknown: set[str]) -> list[str]:
    """Return the unknown names; a word after a password may be a part of it and is left out."""
    safe: list[str] = []
    for name in names:
        if name in unknown:
            safe.append(name if name.isidentifier() else "…")
        if "pass" in name or "pwd" in name:
            break
    return safe or ["…"]


def _parse(dsn: str) -> dict[str, str]:
    values: dict[str, str] = {}
    at = 0
    while dsn[at:].strip():
        name = _NAME.match(dsn, at)
        if name is None or dsn[name.end() : name.end() + 1] != "=":
            raise BadInput(f"a keyword in this DSN is not followed by =: {_HINT}")
        value, at = _value(dsn, name.end() + 1)
        values[name[1].lower()] = value
    return values


def _value(dsn: str, at: int) -> tuple[str, int]:
    """Read the value at a position; returns it and the position after it."""
    while at < len(dsn) and dsn[at].isspace():
        at += 1
    quoted = dsn[at : at + 1] == "'"
    at += quoted
    characters: list[str] = []
    while character := _CHARACTER.match(dsn, at):
        if quoted and character[2] == "'":
            return "".join(characters), character.end()
        if not quoted and character[2] is not None and character[2].isspace():
            break
        characters.append(character[1] or character[2])
        at = character.end()
    if quoted:
        raise BadInput(f"a quoted value in this DSN has no closing quote: {_HINT}")
    return "".join(characters), max(at, len(dsn) if dsn[at:] == "\\" else at)
