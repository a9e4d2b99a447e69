"""Windows: the interface of server.py where there is no embedded server.

The embedded server needs flock and unix sockets in a folder with restricted access.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

from howdah.embedded.unavailable import unavailable

REASON = "There is no embedded server on Windows: use PostgreSQL for Windows, a container, or WSL."


class Server: ...


class Status: ...


def join(home: Path | None = None, *, keep: bool = False) -> Any:
    _refuse()


def stop(home: Path | None = None) -> bool:
    _refuse()


def status(home: Path | None = None) -> Any:
    _refuse()


def find_psql() -> str | None:
    _refuse()


def _refuse() -> NoReturn:
    raise unavailable(REASON)
