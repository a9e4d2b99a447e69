"""Homes for these tests, in folders with short names that are removed afterwards."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.embedded import join, reaper, stop
from tests.support.waiting import wait_until

from .support import STOP_DELAY


@pytest.fixture(autouse=True)
def short_stop_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the server soon after its last user; other processes do the same (support.py)."""
    monkeypatch.setattr(reaper, "STOP_DELAY", STOP_DELAY)


def short_folder() -> Path:
    """Make a folder with a short name, in memory if there is space: a cluster has many files."""
    memory = Path("/dev/shm")
    has_space = memory.is_dir() and shutil.disk_usage(memory).free > 2**30
    return Path(tempfile.mkdtemp(prefix="hw-", dir=memory if has_space else None))


def remove(folder: Path) -> bool:
    """Remove a folder; returns False while a stopping server still writes there."""
    try:
        shutil.rmtree(folder)
    except OSError:
        return False
    return True


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder with a short name: the path of a socket must be short."""
    folder = short_folder()
    yield folder
    folder.chmod(0o700)
    wait_until(lambda: remove(folder), f"{folder} is removed")


@pytest.fixture
def empty_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home without a cluster."""
    home = folder / "home"
    monkeypatch.setenv("HOWDAH_HOME", str(home))
    yield home
    stop(home)


@pytest.fixture(scope="session")
def template_home() -> Iterator[Path]:
    """A home with a cluster, made once for all tests."""
    home = short_folder()
    join(home).stop()
    yield home
    stop(home)
    shutil.rmtree(home)


@pytest.fixture
def home(empty_home: Path, template_home: Path) -> Path:
    """A home with a cluster whose server is stopped: a copy, so that no initdb is needed."""
    empty_home.mkdir(mode=0o700)
    shutil.copytree(template_home / "pg", empty_home / "pg")
    return empty_home
