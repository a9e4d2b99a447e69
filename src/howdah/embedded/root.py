"""Root: under which name the server runs, since PostgreSQL refuses to run as root.

Comes before  cluster.py and launch.py, which run programs `as` what is decided here

An ordinary user runs it directly. Root, and a user without a name (some containers), runs it
in a user namespace, where the same kernel user goes by another name: no file changes hands.
Where namespaces are refused (Docker's default) root lends it the name of an unprivileged
user, who then owns the cluster. Who made a cluster keeps it; a home that belongs to an
ordinary user is served under that user's name, so `sudo` locks nobody out.

Only the home itself is opened for passage, never a folder above it. If the borrowed name still
cannot get there (/root is closed), the cluster goes to /var/lib/howdah, with a link at home.
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
from howdah.embedded.home import Home
from howdah.embedded.unavailable import unavailable

UNPRIVILEGED = ("postgres", "nobody")
ELSEWHERE = Path("/var/lib/howdah")

log: logging.Logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunAs:
    """Whom the server runs as: words before its command, or another user to become."""

    prefix: tuple[str, ...] = ()
    user: pwd.struct_passwd | None = None
    borrowed: bool = False  # the user has nothing to do with us

    @property
    def owner(self) -> int:
        return self.user.pw_uid if self.user else os.geteuid()

    def run(
        self, *command: str, stderr: int = subprocess.STDOUT, pass_fds: tuple[int, ...] = ()
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a program under that name, away from our terminal and our PG… variables."""
        return subprocess.run(  # noqa: S603  programs that were chosen; paths are arguments
            [*self.prefix, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=_environment(),
            cwd="/",
            pass_fds=pass_fds,
            start_new_session=True,
            user=self.user.pw_uid if self.user else None,
            group=self.user.pw_gid if self.user else None,
            extra_groups=[] if self.user else None,
        )

    def give(self, path: Path) -> None:
        if self.user is not None:
            os.chown(path, self.user.pw_uid, self.user.pw_gid, follow_symlinks=False)

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
    owner = (home.pgdata if home.pgdata.exists() else home.path).stat().st_uid
    if owner == 0:
        inside = _namespace(home, binaries)
        if inside is not None:
            return inside, home, binaries
        user = _unprivileged()
    else:
        user = _named(owner)
    borrowed = home.path.stat().st_uid == 0
    return _as_another_user(RunAs(user=user, borrowed=borrowed), home, binaries)


def _ordinary(home: Home) -> RunAs:
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        inside = _namespace(home)
        if inside is None:
            raise unavailable(
                f"User id {os.geteuid()} has no name here, and PostgreSQL insists on one."
            ) from None
        return inside
    return RunAs()


def _namespace(home: Home, binaries: Binaries | None = None) -> RunAs | None:
    unshare = shutil.which("unshare")
    if unshare is None:
        return None
    user = _unprivileged()
    inside = RunAs((unshare, "--user", f"--map-user={user.pw_uid}", f"--map-group={user.pw_gid}"))
    tests = [("-w", home.path), ("-x", home.path)]
    if binaries is not None:
        tests.append(("-x", binaries.folder / "postgres"))
    return inside if inside.can(*tests) else None


def _unprivileged() -> pwd.struct_passwd:
    for name in UNPRIVILEGED:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise unavailable(
        "PostgreSQL refuses to run as root, and there is no user named "
        + " or ".join(UNPRIVILEGED)
        + " to run it as."
    )


def _named(uid: int) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        raise unavailable(f"The data belongs to user id {uid}, who has no name here.") from None


def _as_another_user(who: RunAs, home: Home, binaries: Binaries) -> tuple[RunAs, Home, Binaries]:
    assert who.user is not None
    if not who.can(("-x", Path("/"))):
        raise unavailable(
            f"PostgreSQL refuses to run as root, and root may not become {who.user.pw_name} here."
        )
    binaries = _within_reach(who, binaries)
    if who.borrowed and home.room == home.path:
        mode = stat.S_IMODE(home.path.stat().st_mode)
        home.path.chmod(mode | stat.S_IXOTH)  # a way through; what is inside stays closed
        if not who.can(("-x", home.path)):
            home = _elsewhere(who.user.pw_name, home)
    if home.pgdata.exists() and home.pgdata.stat().st_uid != who.user.pw_uid:
        _hand_over(who, home.pgdata)
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


def _hand_over(who: RunAs, pgdata: Path) -> None:
    """Give a cluster made inside a namespace to the borrowed user, innermost first."""
    for folder, folders, files in os.walk(pgdata, topdown=False):
        for name in (*files, *folders):
            who.give(Path(folder, name))
    who.give(pgdata)


def _within_reach(who: RunAs, binaries: Binaries) -> Binaries:
    """Copy a wheel's binaries to where the other user can run them, once per version."""
    assert who.user is not None
    if who.can(("-x", binaries.folder / "postgres"), ("-x", binaries.folder / "initdb")):
        return binaries
    if binaries.wheel is None:
        raise unavailable(
            f"PostgreSQL must run as {who.user.pw_name}, who cannot reach {binaries.folder}."
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


def _environment() -> dict[str, str]:
    """Keep ours, less what would steer PostgreSQL: PGPORT, PGDATA, the language, …."""
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PG", "LC_")) and name not in ("LANG", "LANGUAGE")
    }
    return {**own, "LC_ALL": "C"}
