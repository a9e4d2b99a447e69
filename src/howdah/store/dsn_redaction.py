"""DSN redaction: hide the passwords of a DSN in logs, errors and `ps`.

It hides too much rather than too little: a password may contain @ / : ? # that were not written
as %40 %2F %3A %3F %23, so everything that may belong to it is hidden.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

_PASS = r"(?:pass\w*|pwd)"  # noqa: S105 - names whose value is a password; also in sslpassword
# the text before ://, perhaps after an option's name; otherwise :// is part of a value
_SCHEME = re.compile(r"\s*(?:--[\w-]+=)?[A-Za-z][A-Za-z0-9+.-]*\Z")


def without_password(dsn: str) -> str:
    """Return the DSN with every password replaced by ***."""
    scheme, is_url, rest = dsn.partition("://")
    if not is_url or not _SCHEME.match(scheme):
        redacted = re.sub(rf"(?is)({_PASS}\s*=).*", r"\1***", dsn)
        return re.sub(r"(?s)^([^:@]*):.*@", r"\1:***@", redacted)
    _, at = userinfo(rest)
    if at:
        user, colon, _ = rest[: at - 1].partition(":")
        rest = f"{user}{':***' if colon else ''}@{rest[at:]}"
    else:  # no user; a port that is not a number may be part of a mistyped password: hide it
        rest = re.sub(r"(?s)^(\[[^]]*\]|[^:/?\[]*):(?!\d+(?:[,/?]|$)).*", r"\1:***", rest)
    return f"{scheme}://" + re.sub(rf"(?i)({_PASS}=)[^&]*", r"\1***", rest)


def may_hold_password(word: str) -> bool:
    """Whether a word of a command line may be a DSN with a password."""
    return "://" in word or re.search(rf"(?i){_PASS}\s*=", word) is not None


def userinfo(rest: str) -> tuple[str, int]:
    """Return user and password of `rest`, and where the host begins; 0 if there is no user."""
    before, question, query = rest.partition("?")
    # an @ after a real query string belongs to the query
    end = before.rfind("@") if question and re.match(r"\w+=", query) else rest.rfind("@")
    return rest[: max(end, 0)], end + 1


def redacted_message(text: str, dsn: str) -> str:
    """Return an error message about a DSN, or a hint if it quotes a part of the password."""
    rest = dsn.partition("://")[2]
    before, at = userinfo(rest)
    secret = before.partition(":")[2] if at else rest.partition(":")[2]
    secret += " " + " ".join(re.findall(rf"(?i){_PASS}=([^&]*)", rest))
    pieces = {
        piece for piece in re.split(r"[\s:/@?#,&\[\]]+", f"{secret} {unquote(secret)}") if piece
    }
    if any(piece in text for piece in pieces):
        return "in a password, write @ as %40, / as %2F, : as %3A, ? as %3F and # as %23"
    return text
