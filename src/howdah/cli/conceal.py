"""Conceal: keep the password of a `--dsn` out of what `ps` shows of this process.

A command line can be read by every user of the machine for as long as the process runs. On
Linux the words can be overwritten where the kernel reads them; elsewhere we can only say so.
HOWDAH_DSN, which only the same user can read, is the better place for a password.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

from howdah.cli import ground
from howdah.store.dsn_redaction import may_hold_password, without_password

# The fields of /proc/self/stat behind the program's name, which begin with the third.
_ARG_START, _ARG_END = 48 - 3, 49 - 3


def conceal_passwords() -> None:
    """Overwrite every DSN among our arguments with the same without its password."""
    if all(_shown(word) == word for word in sys.argv):
        return
    if not (sys.platform == "linux" and _overwritten()):
        ground.remark(
            "other users of this machine can read the password in `ps`: set HOWDAH_DSN instead",
            "warning: ",
            "bold yellow",
        )


def _shown(word: str) -> str:
    return without_password(word) if may_hold_password(word) else word


def _overwritten() -> bool:
    try:
        fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        begin, end = int(fields[_ARG_START]), int(fields[_ARG_END])
        words = Path("/proc/self/cmdline").read_bytes()
    except (OSError, ValueError, IndexError):
        return False
    if end - begin != len(words) or ctypes.string_at(begin, len(words)) != words:
        return False
    concealed = b"\0".join(_same_length(word) for word in words.split(b"\0"))
    ctypes.memmove(begin, concealed, len(words))
    return True


def _same_length(word: bytes) -> bytes:
    """Write a word without its password, in exactly the room it had."""
    text = word.decode(errors="surrogateescape")
    shown = _shown(text)
    if shown == text:
        return word
    return shown.encode(errors="surrogateescape")[: len(word)].ljust(len(word), b" ")
