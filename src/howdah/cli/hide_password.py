"""Hide password: keep the password of a `--dsn` out of what `ps` shows of this process.

Every user of the machine can read a command line while the process runs. On Linux we overwrite
the arguments where the kernel reads them; elsewhere we can only warn. HOWDAH_DSN is the better
place for a password: only the same user can read it.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

from howdah.cli import output
from howdah.store.dsn_redaction import may_hold_password, without_password

# The fields of /proc/self/stat after the program's name, which start with field 3.
_ARG_START, _ARG_END = 48 - 3, 49 - 3


def hide_passwords() -> None:
    """Overwrite every DSN among our arguments with the DSN without its password."""
    if all(_without_password(argument) == argument for argument in sys.argv):
        return
    if not (sys.platform == "linux" and _overwrite_arguments()):
        output.warning(
            "other users of this machine can read the password in `ps`: set HOWDAH_DSN instead"
        )


def _without_password(argument: str) -> str:
    return without_password(argument) if may_hold_password(argument) else argument


def _overwrite_arguments() -> bool:
    """Overwrite the arguments in memory; returns False if they are not where we expect them."""
    try:
        fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        begin, end = int(fields[_ARG_START]), int(fields[_ARG_END])
        arguments = Path("/proc/self/cmdline").read_bytes()
    except (OSError, ValueError, IndexError):
        return False
    if end - begin != len(arguments) or ctypes.string_at(begin, len(arguments)) != arguments:
        return False
    hidden = b"\0".join(_same_length(argument) for argument in arguments.split(b"\0"))
    ctypes.memmove(begin, hidden, len(arguments))
    return True


def _same_length(argument: bytes) -> bytes:
    """Return an argument without its password, padded or cut to its length."""
    text = argument.decode(errors="surrogateescape")
    shown = _without_password(text)
    if shown == text:
        return argument
    return shown.encode(errors="surrogateescape")[: len(argument)].ljust(len(argument), b" ")
