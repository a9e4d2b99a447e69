"""The disk fills up, under the data or the WAL: work waits, and goes on when there is room."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.stories.disk import Disk
from tests.stories.faults.full_disk import full_disk
from tests.stories.server import PgServer
from tests.stories.story import story

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("stories"),
    pytest.mark.skipif(
        os.environ.get("HOWDAH_STORIES") != "all", reason="make test-ha has time for this"
    ),
]


@pytest.fixture
def disks(tmp_path: Path) -> Generator[tuple[Disk, Disk]]:
    if refusal := Disk.refusal(tmp_path):
        pytest.skip(refusal)
    made = Disk(tmp_path / "data", 300), Disk(tmp_path / "wal", 200)
    yield made
    for disk in made:
        disk.unmount()


@pytest.fixture
def server(disks: tuple[Disk, Disk]) -> Generator[PgServer]:
    data, wal = disks
    made = PgServer(data.folder / "server", wal=wal.folder, max_wal_size="64MB", wal_keep_size="0")
    made.make().start()
    yield made
    made.crash()


def test_work_goes_on_when_there_is_room_again(
    server: PgServer, disks: tuple[Disk, Disk], tmp_path: Path
) -> None:
    data, wal = disks
    with story([server], tmp_path / "story") as told:
        print(told.suffer(full_disk(data, "data")))
        print(told.suffer(full_disk(wal, "WAL")))
        facts = told.finish()
    assert facts.history.runs, "somebody worked"
