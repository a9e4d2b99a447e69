"""The disk fills up, under the data or the WAL: work waits, and continues when there is space."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.stories.faults.full_disk import full_disk
from tests.stories.small_disk import SmallDisk
from tests.stories.story import story
from tests.support.postgres_server import PgServer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("stories"),
    pytest.mark.skipif(
        os.environ.get("HOWDAH_STORIES") != "all", reason="make test-ha has time for this"
    ),
]


@pytest.fixture
def disks(tmp_path: Path) -> Generator[tuple[SmallDisk, SmallDisk]]:
    if refusal := SmallDisk.refusal(tmp_path):
        pytest.skip(refusal)
    disks = SmallDisk(tmp_path / "data", 300), SmallDisk(tmp_path / "wal", 200)
    yield disks
    for disk in disks:
        disk.unmount()


@pytest.fixture
def server(disks: tuple[SmallDisk, SmallDisk]) -> Generator[PgServer]:
    data, wal = disks
    server = PgServer(
        data.folder / "server", wal=wal.folder, max_wal_size="64MB", wal_keep_size="0"
    )
    server.make().start()
    yield server
    server.crash()


def test_work_continues_when_there_is_space_again(
    server: PgServer, disks: tuple[SmallDisk, SmallDisk], tmp_path: Path
) -> None:
    data, wal = disks
    with story([server], tmp_path / "story") as running:
        print(running.inject(full_disk(data, "data")))
        print(running.inject(full_disk(wal, "WAL")))
        result = running.finish()
    assert result.history.runs, "handlers ran"
