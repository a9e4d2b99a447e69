"""Printable: makes text of unknown origin safe for a terminal, a log line or a JSON document.

Comes before  cli/, top/ and web/, which pass text from the database through it

A control character can move the cursor, clear the screen or set its title. A bidi control can
change the order of words. So every invisible character is written as an escape: control (C0, DEL,
C1) and format characters, line separators, and lone surrogates. Newlines and tabs stay where text
may have several lines.
"""

from __future__ import annotations

import unicodedata

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # Unicode categories


def clean(text: str) -> str:
    """Write invisible characters as escapes; newlines and tabs stay."""
    if text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(char if char in "\n\t" or _visible(char) else _escaped(char) for char in text)


def one_line(text: str) -> str:
    """Put text on one line, for a cell or a heading."""
    return " ".join(clean(text).split())


def log_line(text: str) -> str:
    """Put text on one line for a log; newlines and tabs become escapes."""
    return clean(text).replace("\n", "\\n").replace("\t", "\\t")


def clean_json(document: str) -> str:
    r"""Write invisible characters of a JSON document as \u escapes; its meaning stays the same."""
    if document.isprintable():
        return document
    return "".join(char if char in "\n\t" or _visible(char) else _json(char) for char in document)


def without_surrogates(text: str) -> str:
    """Escape lone surrogates, which UTF-8 cannot encode."""
    return text.encode(errors="backslashreplace").decode()


def _visible(char: str) -> bool:
    return unicodedata.category(char) not in _INVISIBLE


def _escaped(char: str) -> str:
    code = ord(char)
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )


def _json(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
