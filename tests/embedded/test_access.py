"""Nobody else is let in, and what is committed is on disk."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import psutil
import pytest

from howdah.embedded import join
from howdah.embedded.home import find_home
from howdah.errors import EmbeddedUnavailable

from .support import ask, knock, run, server_pid


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


def test_socket_and_folder_are_open_to_their_owner_alone(home: Path) -> None:
    with join():
        place = find_home(home)
        assert place.sockets.stat().st_mode & 0o777 == 0o700
        assert place.socket.stat().st_mode & 0o777 == 0o700
        assert place.pgdata.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can knock as somebody else")
def test_another_user_is_refused(home: Path, folder: Path) -> None:
    folder.chmod(0o755)
    with join():
        home.chmod(0o755)  # only the socket's own folder is left to keep them out
        socket = find_home(home).socket
        assert knock(socket, pwd.getpwnam("nobody")) == "PermissionError"
        assert knock(socket, pwd.getpwuid(0)) == "welcome"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_a_socket_folder_of_somebody_else_is_not_used(folder: Path) -> None:
    home = folder / ("z" * 120)
    home.mkdir(mode=0o700)
    squatted = find_home(home).sockets
    squatted.mkdir()
    try:
        os.chown(squatted, 12345, 12345)
        with pytest.raises(EmbeddedUnavailable, match="belongs to somebody else"):
            join(home)
    finally:
        squatted.rmdir()
