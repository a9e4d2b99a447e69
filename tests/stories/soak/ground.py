"""Ground: two servers for a soak, a primary and its synchronous standby, each on small disks.

Small disks need the right to mount them. Without it the servers stand in plain folders, and the
faults that fill a disk are left out and named as left out.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.stories.disk import Disk
from tests.stories.faults.failover import keep_in_sync
from tests.stories.server import PgServer

DATA_MEGABYTES, WAL_MEGABYTES = 2500, 700


@dataclass(frozen=True)
class Ground:
    """Where a soak takes place."""

    servers: list[PgServer]
    disks: dict[int, tuple[Disk, Disk]]  # a server's port → the disks of its data and its WAL
    refusal: str | None  # why there are no small disks


@contextmanager
def ground(folder: Path) -> Generator[Ground]:
    """Make and start both servers; at the end they are gone, and so are their disks."""
    refusal = Disk.refusal(folder)
    with ExitStack() as stack:
        servers: list[PgServer] = []
        disks: dict[int, tuple[Disk, Disk]] = {}
        for name in ("one", "two"):
            if refusal is not None:
                server = PgServer(folder / name)
            else:
                data = Disk(folder / f"{name}-data", DATA_MEGABYTES)
                stack.callback(data.unmount)
                wal = Disk(folder / f"{name}-wal", WAL_MEGABYTES)
                stack.callback(wal.unmount)
                server = PgServer(data.folder / "server", wal=wal.folder, max_wal_size="128MB")
                disks[server.port] = data, wal
            servers.append(server)
            stack.callback(server.crash)
        primary, standby = servers
        primary.make().start()
        standby.follow(primary).start()
        keep_in_sync(primary)
        yield Ground(servers, disks, refusal)
