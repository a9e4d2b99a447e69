"""The embedded server lets no other user of the machine in.

Another user is a real one: `setpriv` or `su` turns into it, and tries what a user can try: the
socket, TCP, the files, the locks. Asks to be root, and says so where it is not.
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

STRANGER = "nobody"

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0,
    reason="THE LOCK OF THE EMBEDDED SERVER NOT TESTED: run as root, who can become another user",
)


@pytest.fixture(scope="module")
def place() -> Generator[Home]:
    """A running server whose home, but for the server's own care, everybody could enter."""
    folder = short_folder()
    folder.chmod(0o755)
    with join(folder / "home") as server:
        (folder / "home").chmod(0o755)
        yield find_home(server.home.path)
        server.stop()
    shutil.rmtree(folder)


def as_stranger(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a program as another user of the machine, with nothing of ours in its hands."""
    user = pwd.getpwnam(STRANGER)
    setpriv = shutil.which("setpriv")
    become = (
        (setpriv, f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--")
        if setpriv
        else ("su", "-s", "/bin/sh", STRANGER, "-c", 'exec "$0" "$@"')
    )
    return subprocess.run(
        [*become, *command], capture_output=True, text=True, cwd="/", env={"PATH": os.defpath}
    )


KNOCK = """
import socket, struct, sys
family, where = sys.argv[1], sys.argv[2]
s = socket.socket(socket.AF_UNIX if family == "unix" else socket.AF_INET)
s.settimeout(10)
s.connect(where if family == "unix" else ("127.0.0.1", int(where)))
body = struct.pack("!i", 196608) + b"user\\0postgres\\0database\\0howdah\\0\\0"
s.sendall(struct.pack("!i", len(body) + 4) + body)
print("answered", s.recv(1))
"""


def knock(family: str, where: str) -> subprocess.CompletedProcess[str]:
    """Try to come in; a plain python3, since ours may stand where strangers cannot go."""
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin:/bin")
    if python is None or as_stranger(python, "-c", "").returncode != 0:
        python = sys.executable
    if as_stranger(python, "-c", "").returncode != 0:
        pytest.skip(f"THE LOCK OF THE EMBEDDED SERVER NOT TESTED: {STRANGER} can run no python")
    return as_stranger(python, "-c", KNOCK, family, where)


def test_a_stranger_is_one(place: Home) -> None:
    assert as_stranger("id", "-u").stdout.strip() == str(pwd.getpwnam(STRANGER).pw_uid)
    assert ask(place.dsn, "select 1") == "1", "we ourselves are let in"


def test_the_socket_is_closed_to_a_stranger(place: Home) -> None:
    tried = knock("unix", str(place.socket))
    assert "answered" not in tried.stdout
    assert "Permission" in tried.stderr, tried.stderr


def test_the_socket_itself_is_closed_even_where_its_folder_is_open(place: Home) -> None:
    """Should somebody open the folder, the socket has a lock of its own."""
    folder = place.sockets
    mode = stat.S_IMODE(folder.stat().st_mode)
    folder.chmod(0o755)
    try:
        tried = knock("unix", str(place.socket))
    finally:
        folder.chmod(mode)
    assert "answered" not in tried.stdout
    assert "Permission" in tried.stderr, tried.stderr


def test_there_is_no_tcp_port_to_try(place: Home) -> None:
    server = psutil.Process(server_pid(place.path))
    assert server.net_connections("inet") == []
    tried = knock("tcp", "5432")
    if "answered" in tried.stdout:  # somebody else's server stands there; it is not ours
        assert ask(place.dsn, "show listen_addresses") == ""
    else:
        assert "refused" in tried.stderr.lower(), tried.stderr


def test_a_stranger_reads_none_of_its_files(place: Home) -> None:
    for path in (place.pgdata, place.sockets, place.log):
        tried = as_stranger("cat" if path.is_file() else "ls", str(path))
        assert tried.returncode != 0, path
        assert "Permission denied" in tried.stderr
    for folder in (place.pgdata, place.sockets):
        tried = as_stranger("touch", str(folder / "planted"))
        assert tried.returncode != 0


def test_a_stranger_cannot_stop_it_or_take_its_locks(place: Home) -> None:
    pid = server_pid(place.path)
    assert as_stranger("kill", "-0", str(pid)).returncode != 0
    for path in place.path.glob("*.lock"):
        tried = as_stranger("flock", "--nonblock", str(path), "true")
        assert tried.returncode != 0, f"a stranger may hold {path.name} and keep everybody waiting"
