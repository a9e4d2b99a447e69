"""Homes of their own for these tests, in short folders that are gone afterwards."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.embedded import join, reaper, stop
from tests.cli.support import until_true

from .support import LINGER


@pytest.fixture(autouse=True)
def short_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the server go soon after its last user; processes of their own do the same."""
    monkeypatch.setattr(reaper, "LINGER", LINGER)


def short_folder() -> Path:
    """Make a folder with a short name, in memory where there is room: clusters are many files."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 2**30
    return Path(tempfile.mkdtemp(prefix="hw-", dir=memory if roomy else None))


def removed(folder: Path) -> bool:
    """Remove a folder, unless a server that ends writes its last lines there."""
    try:
        shutil.rmtree(folder)
    except OSError:
        return False
    return True


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder with a short name: a socket's path has little room."""
    folder = short_folder()
    yield folder
    folder.chmod(0o700)
    until_true(lambda: removed(folder), f"nobody writes to {folder} any more")


@pytest.fixture
def empty_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home nobody ever started a server in."""
    home = folder / "home"
    monkeypatch.setenv("HOWDAH_HOME", str(home))
    yield home
    stop(home)


@pytest.fixture(scope="session")
def made_once() -> Iterator[Path]:
    home = short_folder()
    join(home).stop()
    yield home
    stop(home)
    shutil.rmtree(home)


@pytest.fixture
def home(empty_home: Path, made_once: Path) -> Path:
    """A home whose server has run before and is stopped: a copy, so it takes no initdb."""
    empty_home.mkdir(mode=0o700)
    shutil.copytree(made_once / "pg", empty_home / "pg")
    return empty_home
