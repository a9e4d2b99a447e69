"""Windows: where no private server is offered, and the caller is told what to do instead.

Stands in for server.py. The promises of this package rest on flock and on unix sockets
behind a closed folder; half of them kept would be worse than none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

from howdah.embedded.unavailable import unavailable

REASON = (
    "On Windows it needs a server: PostgreSQL for Windows, a container, or WSL with howdah in it."
)


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
