"""The embedded server lets no other user of the machine in.

The other user is real: `setpriv` or `su` becomes that user and tries the socket, TCP, the files and
the locks. The tests need root, and say so if they are skipped.
"""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
import sys
from collections.abc import Generator

import psutil
import pytest

from howdah.embedded import join
from howdah.embedded.home import Home, find_home
from tests.embedded.conftest import short_folder
from tests.embedded.support import ask, server_pid

OTHER_USER = "nobody"

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0,
    reason="THE LOCK OF THE EMBEDDED SERVER NOT TESTED: run as root, who can become another user",
)


@pytest.fixture(scope="module")
def home() -> Generator[Home]:
    """A running server in a folder that every user may enter."""
    folder = short_folder()
    folder.chmod(0o755)
    with join(folder / "home") as server:
        (folder / "home").chmod(0o755)
        yield find_home(server.home.path)
        server.stop()
    shutil.rmtree(folder)


def as_other_user(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a program as another user of the machine, without our environment."""
    user = pwd.getpwnam(OTHER_USER)
    setpriv = shutil.which("setpriv")
    become = (
        (setpriv, f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--")
        if setpriv
        else ("su", "-s", "/bin/sh", OTHER_USER, "-c", 'exec "$0" "$@"')
    )
    return subprocess.run(
        [*become, *command], capture_output=True, text=True, cwd="/", env={"PATH": os.defpath}
    )


CONNECT = """
import socket, struct, sys
family, where = sys.argv[1], sys.argv[2]
s = socket.socket(socket.AF_UNIX if family == "unix" else socket.AF_INET)
s.settimeout(10)
s.connect(where if family == "unix" else ("127.0.0.1", int(where)))
body = struct.pack("!i", 196608) + b"user\\0postgres\\0database\\0howdah\\0\\0"
s.sendall(struct.pack("!i", len(body) + 4) + body)
print("answered", s.recv(1))
"""


def try_to_connect(family: str, where: str) -> subprocess.CompletedProcess[str]:
    """Try to connect with the system's python3: the other user may not be able to read ours."""
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin:/bin")
    if python is None or as_other_user(python, "-c", "").returncode != 0:
        python = sys.executable
    if as_other_user(python, "-c", "").returncode != 0:
        pytest.skip(f"THE LOCK OF THE EMBEDDED SERVER NOT TESTED: {OTHER_USER} can run no python")
    return as_other_user(python, "-c", CONNECT, family, where)


def test_the_other_user_is_not_the_owner(home: Home) -> None:
    assert as_other_user("id", "-u").stdout.strip() == str(pwd.getpwnam(OTHER_USER).pw_uid)
    assert ask(home.dsn, "select 1") == "1", "the owner can connect"


def test_another_user_cannot_connect_to_the_socket(home: Home) -> None:
    result = try_to_connect("unix", str(home.socket))
    assert "answered" not in result.stdout
    assert "Permission" in result.stderr, result.stderr


def test_the_socket_itself_refuses_another_user_if_its_folder_is_open(home: Home) -> None:
    """The socket has its own permissions, in case somebody opens the folder."""
    folder = home.sockets
    mode = stat.S_IMODE(folder.stat().st_mode)
    folder.chmod(0o755)
    try:
        result = try_to_connect("unix", str(home.socket))
    finally:
        folder.chmod(mode)
    assert "answered" not in result.stdout
    assert "Permission" in result.stderr, result.stderr


def test_the_server_has_no_tcp_port(home: Home) -> None:
    server = psutil.Process(server_pid(home.path))
    assert server.net_connections("inet") == []
    result = try_to_connect("tcp", "5432")
    if "answered" in result.stdout:  # another server uses this port
        assert ask(home.dsn, "show listen_addresses") == ""
    else:
        assert "refused" in result.stderr.lower(), result.stderr


def test_another_user_can_read_no_file(home: Home) -> None:
    for path in (home.pgdata, home.sockets, home.log):
        result = as_other_user("cat" if path.is_file() else "ls", str(path))
        assert result.returncode != 0, path
        assert "Permission denied" in result.stderr
    for folder in (home.pgdata, home.sockets):
        result = as_other_user("touch", str(folder / "planted"))
        assert result.returncode != 0


def test_another_user_cannot_stop_the_server_or_take_its_locks(home: Home) -> None:
    pid = server_pid(home.path)
    assert as_other_user("kill", "-0", str(pid)).returncode != 0
    for path in home.path.glob("*.lock"):
        result = as_other_user("flock", "--nonblock", str(path), "true")
        assert result.returncode != 0, f"another user can lock {path.name}"
