"""Home: the folder of one private server, and the paths inside it.

    home/                 HOWDAH_HOME, or the user's data directory
    ├── pg/               the cluster (a link if root had to put it elsewhere: root.py)
    ├── s/                the socket, mode 0700: who may enter this folder may use the server
    ├── access/           who may connect, if the server runs as a user of its own (root.py)
    ├── server.log        the log of the server; the reaper limits its size
    ├── users/            one locked file per process that uses the server
    ├── keep              exists if the server stays up without users (`howdah pg start`)
    └── *.lock            see locks.py

The path of a socket may have 104 bytes at most, and drivers split it at commas. If the path of a
home does not fit, the socket goes to a folder in /tmp, mode 0700, named by a hash of the home.
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

PORT = 5432  # only part of the socket's name; nothing listens on TCP
SUPERUSER = "postgres"
DATABASE = "howdah"

SOCKET_NAME = f".s.PGSQL.{PORT}"
MAX_SOCKET_PATH = 103  # sun_path of macOS and the BSDs without its final zero; Linux has 107
SOCKET_FALLBACK = Path("/tmp")  # noqa: S108  not $TMPDIR: it must be the same for all processes
SAFE_PATH = re.compile(r"[A-Za-z0-9 _./'+=~-]+")


@dataclass(frozen=True, slots=True)
class Home:
    path: Path
    base: Path  # where pg/ and s/ are: the home itself, or a folder elsewhere (root.py)

    @property
    def pgdata(self) -> Path:
        return self.base / "pg"

    @property
    def pgdata_unfinished(self) -> Path:
        return self.base / "pg.making"

    @property
    def link(self) -> Path:
        return self.path / "pg"

    @property
    def sockets(self) -> Path:
        folder = self.base / "s"
        socket = os.fsencode(folder / SOCKET_NAME)
        if len(socket) <= MAX_SOCKET_PATH and SAFE_PATH.fullmatch(str(folder)):
            return folder
        return SOCKET_FALLBACK / f"howdah-{self.fingerprint}"

    @property
    def access(self) -> Path:
        return self.base / "access"

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
        """The major version of PostgreSQL that made the cluster; None if there is no cluster."""
        try:
            return (self.pgdata / "PG_VERSION").read_text().strip()
        except OSError:
            return None

    @property
    def dsn(self) -> str:
        # The port is named so that PGPORT in the environment has no effect.
        host = quote(str(self.sockets), safe="/")
        return f"postgresql://{SUPERUSER}@/{DATABASE}?host={host}&port={PORT}"

    def with_base(self, base: Path) -> Home:
        return replace(self, base=base)


def find_home(path: Path | None = None) -> Home:
    """Return the home at `path`, or that of the user. Changes nothing on disk."""
    chosen = (path or default_path()).expanduser().resolve()
    try:
        return Home(chosen, base=(chosen / "pg").readlink().parent)
    except OSError:  # no cluster yet, no link, or not readable for us
        return Home(chosen, base=chosen)


def default_path() -> Path:
    if named := os.environ.get("HOWDAH_HOME"):
        return Path(named)
    if (shared := os.environ.get("XDG_DATA_HOME")) and Path(shared).is_absolute():
        return Path(shared) / "howdah"
    try:
        own = Path.home()
    except RuntimeError as no_home:
        raise unavailable(
            "This user has no home directory: set HOWDAH_HOME to a folder that it can write to."
        ) from no_home
    if sys.platform == "darwin":
        return own / "Library" / "Application Support" / "howdah"
    return own / ".local" / "share" / "howdah"


def make_folder(folder: Path) -> None:
    """Make a folder with mode 0700. If root makes it, it belongs to the owner of its parent."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if folder.is_symlink():  # see files.py
            raise NotADirectoryError(errno.ENOTDIR, "it is a symbolic link", str(folder)) from None
        return
    if os.geteuid() == 0:
        parent = folder.parent.stat()
        if not parent.st_mode & stat.S_ISVTX:  # in /tmp and the like it stays root's
            os.chown(folder, parent.st_uid, parent.st_gid, follow_symlinks=False)
