"""Embedded: a private PostgreSQL server for users who name no DSN.

    with join() as server:
        connect(server.dsn)

`join` starts the server, or joins the one that runs. Processes share it. It stops by itself when
the last process that uses it has ended, in whatever way.

    server.py       join, stop and status: the interface of this package
    home.py         the folder of a server, and the paths in it
    binaries.py     finds a PostgreSQL on this machine
    root.py         the user that the server runs as
    own_user.py     a user id for root's server that nothing else has
    environment.py  the environment variables of the server
    files.py        opens files without following links
    cluster.py      makes the data directory with initdb
    settings.py     the settings of the server, and who may connect
    launch.py       starts the server and waits until it answers
    postmaster.py   finds the running server, stops it, removes stale files
    wire.py         a minimal client of PostgreSQL's protocol
    locks.py        lock files that the kernel releases when their holder dies
    user_locks.py   which processes use the server
    reaper.py       the process that stops the server when nobody uses it
    log.py          the log file of the server, with a limited size
    unavailable.py  the error if no server can be started
    windows.py      the same interface on Windows, where there is no embedded server
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from howdah.embedded.windows import Server, Status, find_psql, join, status, stop
else:
    from howdah.embedded.binaries import find_psql
    from howdah.embedded.server import Server, Status, join, status, stop

__all__ = ["Server", "Status", "find_psql", "join", "status", "stop"]
