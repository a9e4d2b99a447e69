"""Redact: what may be shown of a DSN, in logs, errors and `ps`.

Rather too much is left out than too little: a password whose @ / : ? # were not written as
%40 %2F … is taken to reach as far as it could.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

_PASS = r"(?:pass\w*|pwd)"  # noqa: S105 - names whose value is a password; also in sslpassword
# what stands before ://, perhaps behind an option's name; else :// is part of a value
_SCHEME = re.compile(r"\s*(?:--[\w-]+=)?[A-Za-z][A-Za-z0-9+.-]*\Z")


def without_password(dsn: str) -> str:
    """Return the DSN as it may be shown: passwords, wherever they stand, replaced by ***."""
    scheme, is_url, rest = dsn.partition("://")
    if not is_url or not _SCHEME.match(scheme):
        without = re.sub(rf"(?is)({_PASS}\s*=).*", r"\1***", dsn)
        return re.sub(r"(?s)^([^:@]*):.*@", r"\1:***@", without)
    _, at = userinfo(rest)
    if at:
        user, colon, _ = rest[: at - 1].partition(":")
        rest = f"{user}{':***' if colon else ''}@{rest[at:]}"
    else:  # nobody is named; what stands for a port and is none may be a password all the same
        rest = re.sub(r"(?s)^(\[[^]]*\]|[^:/?\[]*):(?!\d+(?:[,/?]|$)).*", r"\1:***", rest)
    return f"{scheme}://" + re.sub(rf"(?i)({_PASS}=)[^&]*", r"\1***", rest)


def may_hold_password(word: str) -> bool:
    """Whether a word of a command line is a DSN with a password, as far as can be seen."""
    return "://" in word or re.search(rf"(?i){_PASS}\s*=", word) is not None


def userinfo(rest: str) -> tuple[str, int]:
    """Return what stands before the host, and where the host begins; 0 where nobody is named."""
    before, question, query = rest.partition("?")
    # an @ in the query is one of the query's, if that is one
    end = before.rfind("@") if question and re.match(r"\w+=", query) else rest.rfind("@")
    return rest[: max(end, 0)], end + 1


def without_pieces(text: str, dsn: str) -> str:
    """Return what was said about a DSN, unless it quotes a part of the password."""
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
