"""Cluster: makes the data directory, completely or not at all.

initdb writes into pg.making/pg, which is renamed to pg when it is complete. So a folder named pg
is never half made. Nobody else can enter pg.making. initdb inherits server.lock: if its parent is
killed, it keeps others away until it ends. An unfinished pg.making is removed.
"""

from __future__ import annotations

import shutil

from howdah.embedded.binaries import Binaries
from howdah.embedded.home import SUPERUSER, Home
from howdah.embedded.locks import Lock
from howdah.embedded.root import RunAs
from howdah.embedded.settings import write_default_settings
from howdah.embedded.unavailable import unavailable


def make_cluster(home: Home, binaries: Binaries, who: RunAs, server_lock: Lock) -> None:
    """Make the cluster unless there is one. The caller holds server.lock."""
    if not home.pgdata.exists():
        _initdb(home, binaries, who, server_lock)
    if home.base != home.path and not home.link.is_symlink():
        home.link.symlink_to(home.pgdata)


def refuse_dangling_link(home: Home) -> None:
    if home.link.is_symlink() and not home.pgdata.exists():
        raise unavailable(
            f"{home.link} is a link to {home.pgdata}, which does not exist.\n"
            f"Restore that folder, or remove {home.link} to start with an empty queue."
        )


def _initdb(home: Home, binaries: Binaries, who: RunAs, server_lock: Lock) -> None:
    unfinished = home.pgdata_unfinished
    if unfinished.exists():
        shutil.rmtree(unfinished)
    unfinished.mkdir(mode=0o700)
    who.allow_traversal(unfinished)
    pgdata = unfinished / "pg"
    pgdata.mkdir(mode=0o700)
    initdb_user = who.for_initdb()
    initdb_user.give(pgdata)
    done = initdb_user.run(
        *(binaries["initdb"], "-D", str(pgdata), "-U", SUPERUSER, "-A", "trust"),
        *("-E", "UTF8", "--locale=C", "--data-checksums", "--no-instructions"),
        pass_fds=(server_lock.fd,),
    )
    if done.returncode != 0:
        shutil.rmtree(unfinished, ignore_errors=True)
        printed = done.stdout.decode(errors="replace").strip()
        raise unavailable(f"initdb could not make {home.pgdata}. It printed:\n{printed[-4000:]}")
    write_default_settings(pgdata)
    who.give_all(pgdata)
    pgdata.rename(home.pgdata)
    unfinished.rmdir()
