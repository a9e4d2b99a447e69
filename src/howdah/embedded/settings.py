"""Settings: the settings of the private server, and who may connect.

Settings that must hold are passed on the command line, where neither postgresql.conf nor ALTER
SYSTEM can change them: commits reach the disk, one unix socket in a folder that nobody else may
enter, no TCP port. Sizes for a small server are written once, into postgresql.conf of a new
cluster; its owner may change them.

If root runs the server as a user of its own (root.py), only root may connect; the kernel tells
who connects. Otherwise the folder protects the socket, and who can enter it is trusted.
"""

from __future__ import annotations

import pwd
from pathlib import Path

from howdah.embedded.files import append_regular
from howdah.embedded.home import PORT, SUPERUSER, Home

DEFAULT_SETTINGS = """
# howdah: sizes for a small private server. You may change them.
max_connections = 200
shared_buffers = 128MB
jit = off
log_checkpoints = off
"""

HBA_FILE = "hba.conf"
IDENT_FILE = "ident.conf"


def fixed_options(home: Home, *, only_root: bool) -> list[str]:
    """Return the command line options that no other setting can change."""
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
        options["hba_file"] = str(home.access / HBA_FILE)
        options["ident_file"] = str(home.access / IDENT_FILE)
    return [part for name, value in options.items() for part in ("-c", f"{name}={value}")]


def write_default_settings(pgdata: Path) -> None:
    append_regular(pgdata / "postgresql.conf", DEFAULT_SETTINGS)


def write_root_only_access(home: Home) -> None:
    """Let only root connect. Root owns the files and their folder; the server only reads them."""
    home.access.mkdir(exist_ok=True)
    home.access.chmod(0o755)
    root = pwd.getpwuid(0).pw_name
    for name, line in (
        (HBA_FILE, "local all all peer map=howdah\n"),
        (IDENT_FILE, f'howdah "{root}" {SUPERUSER}\n'),
    ):
        (home.access / name).write_text(line)
        (home.access / name).chmod(0o644)
