"""Servers of a soak: a primary and its synchronous standby, each on small disks.

Small disks need the right to mount. Without it, the servers use plain folders, and the faults that
fill a disk are left out. The record names them.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.stories.faults.failover import keep_in_sync
from tests.stories.small_disk import SmallDisk
from tests.support.postgres_server import PgServer

DATA_MEGABYTES, WAL_MEGABYTES = 2500, 700


@dataclass(frozen=True)
class SoakServers:
    """Both servers, and the disks that they are on."""

    servers: list[PgServer]
    disks: dict[int, tuple[SmallDisk, SmallDisk]]  # by port of the server: its data, its WAL
    refusal: str | None  # why there are no small disks


@contextmanager
def run_servers(folder: Path) -> Generator[SoakServers]:
    """Make and start both servers; remove them and their disks at the end."""
    refusal = SmallDisk.refusal(folder)
    with ExitStack() as stack:
        servers: list[PgServer] = []
        disks: dict[int, tuple[SmallDisk, SmallDisk]] = {}
        for name in ("one", "two"):
            if refusal is not None:
                server = PgServer(folder / name)
            else:
                data = SmallDisk(folder / f"{name}-data", DATA_MEGABYTES)
                stack.callback(data.unmount)
                wal = SmallDisk(folder / f"{name}-wal", WAL_MEGABYTES)
                stack.callback(wal.unmount)
                server = PgServer(data.folder / "server", wal=wal.folder, max_wal_size="128MB")
                disks[server.port] = data, wal
            servers.append(server)
            stack.callback(server.crash)
        primary, standby = servers
        primary.make().start()
        standby.follow(primary).start()
        keep_in_sync(primary)
        yield SoakServers(servers, disks, refusal)
