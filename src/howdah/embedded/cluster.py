"""Cluster: make the data directory, whole or not at all.

Comes after   binaries.py and root.py, which say with what and as whom
Comes before  launch.py, which starts a server on it

initdb works in pg.making/pg, which becomes pg only when it is complete: a cluster under that
name was never interrupted. Nobody else can enter pg.making. server.lock is handed to initdb,
so that one whose parent was killed keeps others away until it ends; what it left is thrown away.
"""

from __future__ import annotations

import shutil

from howdah.embedded.binaries import Binaries
from howdah.embedded.home import SUPERUSER, Home
from howdah.embedded.locks import Lock
from howdah.embedded.root import RunAs
from howdah.embedded.settings import write_sizes
from howdah.embedded.unavailable import unavailable


def make_cluster(home: Home, binaries: Binaries, who: RunAs, server_lock: Lock) -> None:
    """Make the cluster unless there is one. Asks for server.lock, held by us."""
    if not home.pgdata.exists():
        _initdb(home, binaries, who, server_lock)
    if home.room != home.path and not home.link.is_symlink():
        home.link.symlink_to(home.pgdata)


def refuse_dangling_link(home: Home) -> None:
    if home.link.is_symlink() and not home.pgdata.exists():
        raise unavailable(
            f"{home.link} points to {home.pgdata}, where the data was and is no more.\n"
            f"Bring it back, or remove {home.link} to begin with an empty queue."
        )


def _initdb(home: Home, binaries: Binaries, who: RunAs, server_lock: Lock) -> None:
    making = home.pgdata_in_the_making
    if making.exists():
        shutil.rmtree(making)
    making.mkdir(mode=0o700)
    who.give_passage(making)
    pgdata = making / "pg"
    pgdata.mkdir(mode=0o700)
    maker = who.for_initdb()
    maker.give(pgdata)
    done = maker.run(
        *(binaries["initdb"], "-D", str(pgdata), "-U", SUPERUSER, "-A", "trust"),
        *("-E", "UTF8", "--locale=C", "--data-checksums", "--no-instructions"),
        pass_fds=(server_lock.fd,),
    )
    if done.returncode != 0:
        shutil.rmtree(making, ignore_errors=True)
        said = done.stdout.decode(errors="replace").strip()
        raise unavailable(f"initdb could not make {home.pgdata}:\n{said[-4000:]}")
    write_sizes(pgdata)
    who.give_all(pgdata)
    pgdata.rename(home.pgdata)
    making.rmdir()
