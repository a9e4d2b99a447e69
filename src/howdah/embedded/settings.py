"""Settings: how the private server behaves, and who may come in.

Comes before  launch.py, which puts `promises` on the server's command line

What is promised stands on the command line, where neither postgresql.conf nor ALTER SYSTEM
can undo it: written to disk before a commit is answered, one unix socket in a folder nobody
else may enter, no TCP port. What is only a good size for a small server is written once, into
postgresql.conf of a new cluster, for its owner to change.

A server that root runs as a user of its own (root.py) lets in root alone, by the name the
kernel tells; otherwise the folder is the door, and whoever passes it is trusted.
"""

from __future__ import annotations

import pwd
from pathlib import Path

from howdah.embedded.files import append_own
from howdah.embedded.home import PORT, SUPERUSER, Home

SIZES = """
# howdah: sizes for a small private server. Yours to change.
max_connections = 200
shared_buffers = 128MB
jit = off
log_checkpoints = off
"""

ONLY_ROOT = "hba.conf"
WHO_ROOT_IS = "ident.conf"


def promises(home: Home, *, only_root: bool) -> list[str]:
    """List the command line options that no setting may undo."""
    folder = str(home.sockets).replace('"', '""')
    options = {
        "fsync": "on",
        "full_page_writes": "on",
        "listen_addresses": "",
        "port": str(PORT),
        "unix_socket_directories": f'"{folder}"',
        "unix_socket_permissions": "0700",
        "logging_collector": "off",
    }
    if only_root:
        options["hba_file"] = str(home.access / ONLY_ROOT)
        options["ident_file"] = str(home.access / WHO_ROOT_IS)
    return [word for name, value in options.items() for word in ("-c", f"{name}={value}")]


def write_sizes(pgdata: Path) -> None:
    append_own(pgdata / "postgresql.conf", SIZES)


def write_only_root(home: Home) -> None:
    """Let in root alone. The files are root's, in a folder of root's: the server can only read."""
    home.access.mkdir(exist_ok=True)
    home.access.chmod(0o755)
    root = pwd.getpwuid(0).pw_name
    for name, line in (
        (ONLY_ROOT, "local all all peer map=howdah\n"),
        (WHO_ROOT_IS, f'howdah "{root}" {SUPERUSER}\n'),
    ):
        (home.access / name).write_text(line)
        (home.access / name).chmod(0o644)
