"""No other user can connect, and committed data is on disk."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import psutil
import pytest

from howdah.embedded import join
from howdah.embedded.home import find_home
from howdah.errors import EmbeddedUnavailable

from .support import ask, run, server_pid, try_to_connect


def test_fsync_is_on_and_cannot_be_turned_off(home: Path) -> None:
    with join() as server:
        assert ask(server.dsn, "show fsync") == "on"
        assert ask(server.dsn, "show synchronous_commit") == "on"
        run(server.dsn, "alter system set fsync = off")
        server.stop()
    with join() as server:
        assert ask(server.dsn, "show fsync") == "on"


def test_it_listens_on_no_tcp_port(home: Path) -> None:
    with join() as server:
        run(server.dsn, "alter system set listen_addresses = '*'")
        server.stop()
    with join():
        assert psutil.Process(server_pid(home)).net_connections("inet") == []


def test_only_their_owner_can_use_socket_and_folder(home: Path) -> None:
    with join():
        paths = find_home(home)
        assert paths.sockets.stat().st_mode & 0o777 == 0o700
        assert paths.socket.stat().st_mode & 0o777 == 0o700
        assert paths.pgdata.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can connect as another user")
def test_another_user_is_refused(home: Path, folder: Path) -> None:
    folder.chmod(0o755)
    with join():
        home.chmod(0o755)  # only the folder of the socket still refuses other users
        socket = find_home(home).socket
        assert try_to_connect(socket, pwd.getpwnam("nobody")) == "PermissionError"
        assert try_to_connect(socket, pwd.getpwuid(0)) == "connected"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_socket_folder_of_another_user_is_not_used(folder: Path) -> None:
    home = folder / ("z" * 120)
    home.mkdir(mode=0o700)
    foreign_folder = find_home(home).sockets
    foreign_folder.mkdir()
    try:
        os.chown(foreign_folder, 12345, 12345)
        with pytest.raises(EmbeddedUnavailable, match="belongs to another user"):
            join(home)
    finally:
        foreign_folder.rmdir()
