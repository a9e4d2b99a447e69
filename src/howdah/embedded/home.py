"""Home: the folder of one private server, and the paths inside it.

Comes before everything else in this package: each file asks a `Home` where to look.

    home/                 HOWDAH_HOME, or the user's data directory
    ├── pg/               the cluster (a link, where root had to put it elsewhere; see root.py)
    ├── s/                the socket, 0700: who may enter this folder may use the server
    ├── access/           who is let in, where the server runs as a user of its own (root.py)
    ├── server.log        what the server said, bounded by the reaper
    ├── users/            one locked file per process that uses the server
    ├── keep              "stay up without users": `howdah pg start` was here
    └── *.lock            see locks.py

A socket's path may have 104 bytes at most, and drivers split it at commas. A home whose
path cannot carry a socket gets a 0700 folder below /tmp, named by a hash of the home.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from howdah.embedded.unavailable import unavailable

PORT = 5432  # only the name of the socket; nothing listens on TCP
SUPERUSER = "postgres"
DATABASE = "howdah"

SOCKET_NAME = f".s.PGSQL.{PORT}"
LONGEST_SOCKET = 103  # sun_path of macOS and the BSDs, less its final zero; Linux has 107
SHORT_FOLDERS = Path("/tmp")  # noqa: S108  not $TMPDIR: all processes must agree on it
PLAIN = re.compile(r"[A-Za-z0-9 _./'+=~-]+")


@dataclass(frozen=True, slots=True)
class Home:
    path: Path
    room: Path  # where pg/ and s/ are: the home itself, except for some of root's servers

    @property
    def pgdata(self) -> Path:
        return self.room / "pg"

    @property
    def pgdata_in_the_making(self) -> Path:
        return self.room / "pg.making"

    @property
    def link(self) -> Path:
        return self.path / "pg"

    @property
    def sockets(self) -> Path:
        folder = self.room / "s"
        socket = os.fsencode(folder / SOCKET_NAME)
        if len(socket) <= LONGEST_SOCKET and PLAIN.fullmatch(str(folder)):
            return folder
        return SHORT_FOLDERS / f"howdah-{self.fingerprint}"

    @property
    def access(self) -> Path:
        return self.room / "access"

    @property
    def socket(self) -> Path:
        return self.sockets / SOCKET_NAME

    @property
    def log(self) -> Path:
        return self.path / "server.log"

    @property
    def keep(self) -> Path:
        return self.path / "keep"

    @property
    def users(self) -> Path:
        return self.path / "users"

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(os.fsencode(self.path)).hexdigest()[:12]

    @property
    def major(self) -> str | None:
        """The PostgreSQL version that made the cluster; None before there is one."""
        try:
            return (self.pgdata / "PG_VERSION").read_text().strip()
        except OSError:
            return None

    @property
    def dsn(self) -> str:
        # The port is spelled out: PGPORT in somebody's environment must not lead elsewhere.
        host = quote(str(self.sockets), safe="/")
        return f"postgresql://{SUPERUSER}@/{DATABASE}?host={host}&port={PORT}"

    def moved_to(self, room: Path) -> Home:
        return replace(self, room=room)


def find_home(path: Path | None = None) -> Home:
    """Name the home at `path`, or the user's own. Touches nothing on disk."""
    chosen = (path or default_path()).expanduser().resolve()
    try:
        return Home(chosen, room=(chosen / "pg").readlink().parent)
    except OSError:  # no cluster yet, no link, or not ours to look into
        return Home(chosen, room=chosen)


def default_path() -> Path:
    if named := os.environ.get("HOWDAH_HOME"):
        return Path(named)
    if (shared := os.environ.get("XDG_DATA_HOME")) and Path(shared).is_absolute():
        return Path(shared) / "howdah"
    try:
        own = Path.home()
    except RuntimeError as nameless:
        raise unavailable(
            "You have no home directory: set HOWDAH_HOME to a folder of yours."
        ) from nameless
    if sys.platform == "darwin":
        return own / "Library" / "Application Support" / "howdah"
    return own / ".local" / "share" / "howdah"


def make_folder(folder: Path) -> None:
    """Make a folder nobody else may enter. What root makes belongs to whom the parent belongs."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if folder.is_symlink():  # of this user or of another: see files.py
            raise NotADirectoryError(errno.ENOTDIR, "it is a link", str(folder)) from None
        return
    if os.geteuid() == 0:
        around = folder.parent.stat()
        if not around.st_mode & stat.S_ISVTX:  # /tmp belongs to root, but is everybody's
            os.chown(folder, around.st_uid, around.st_gid, follow_symlinks=False)
