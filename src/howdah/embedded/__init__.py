"""Embedded: a private PostgreSQL for those who name none.

Comes before  the store, which is given its DSN

    with join() as server:
        connect(server.dsn)

`join` starts the server or joins the one that runs; processes share it, and it ends by itself
when the last one has gone, however it went. One file per concept: home (where), binaries
(with what), root (as whom), cluster, settings, launch, postmaster (the server), locks,
leases, reaper (who uses it, and its end).
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from howdah.embedded.windows import Server, Status, find_psql, join, status, stop
else:
    from howdah.embedded.binaries import find_psql
    from howdah.embedded.server import Server, Status, join, status, stop

__all__ = ["Server", "Status", "find_psql", "join", "status", "stop"]
