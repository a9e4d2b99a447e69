"""Keywords: a DSN as libpq writes it (`host=… dbname=…`), turned into a URL.

The rules are libpq's: words are separated by white space, which may also stand around `=`; a
value with white space in it, or an empty one, is written in single quotes; a backslash takes the
next character as it is. No error says anything of a value, which may be a password.
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
_IN_THE_URL = frozenset(("host", "hostaddr", "port", "user", "password", "dbname"))
# What libpq's own connections know and ours have otherwise or not at all.
_LEFT_OUT = frozenset(
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
_PIECE = re.compile(r"\\(.)|([^\\])", re.DOTALL)
_PLAIN_HOST = re.compile(r"[A-Za-z0-9._-]+\Z")


def is_keywords(dsn: str) -> bool:
    """Whether this is meant as keywords: the first word is a name with a value."""
    return re.match(r"\s*\w+\s*=", dsn) is not None


def url_of(dsn: str) -> str:
    """Return the URL that says the same."""
    said = {name: value for name, value in _parse(dsn).items() if value}
    unknown = said.keys() - _KEPT - _IN_THE_URL - _LEFT_OUT
    if unknown:
        names = ", ".join(_may_be_named(list(said), unknown))
        raise BadInput(f"this DSN has words that mean nothing ({names}): {_HINT}")
    host, port = said.get("host") or said.get("hostaddr") or "", said.get("port") or ""
    if not re.fullmatch(r"[\d,]*", port):
        raise BadInput(f"the port in this DSN is not a number: {_HINT}")
    more = {name: value for name, value in said.items() if name in _KEPT}
    user = quote(said.get("user", ""), safe="")
    if "password" in said:
        user += ":" + quote(said["password"], safe="")
    place = ""
    if _PLAIN_HOST.match(host) and "," not in port:
        place = f"{host}:{port}" if port else host
    else:  # a folder of sockets, an IPv6 address, several hosts
        more |= {name: value for name, value in (("host", host), ("port", port)) if value}
    netloc = f"{user}@{place}" if user else place
    query = urlencode(more, safe="/", quote_via=quote)
    name = quote(said.get("dbname", ""), safe="")
    return f"postgresql://{netloc}/{name}{'?' if query else ''}{query}"


def _may_be_named(names: list[str], unknown: set[str]) -> list[str]:
    """Return the unknown names; what stands behind a password may be a part of it."""
    found: list[str] = []
    for name in names:
        if name in unknown:
            found.append(name if name.isidentifier() else "…")
        if "pass" in name or "pwd" in name:
            break
    return found or ["…"]


def _parse(dsn: str) -> dict[str, str]:
    said: dict[str, str] = {}
    at = 0
    while dsn[at:].strip():
        name = _NAME.match(dsn, at)
        if name is None or dsn[name.end() : name.end() + 1] != "=":
            raise BadInput(f"a word in this DSN has no = behind it: {_HINT}")
        value, at = _value(dsn, name.end() + 1)
        said[name[1].lower()] = value
    return said


def _value(dsn: str, at: int) -> tuple[str, int]:
    """Read a value; returns it and where it ends."""
    while at < len(dsn) and dsn[at].isspace():
        at += 1
    quoted = dsn[at : at + 1] == "'"
    at += quoted
    found: list[str] = []
    while piece := _PIECE.match(dsn, at):
        if quoted and piece[2] == "'":
            return "".join(found), piece.end()
        if not quoted and piece[2] is not None and piece[2].isspace():
            break
        found.append(piece[1] or piece[2])
        at = piece.end()
    if quoted:
        raise BadInput(f"a quoted value in this DSN has no end: {_HINT}")
    return "".join(found), max(at, len(dsn) if dsn[at:] == "\\" else at)
