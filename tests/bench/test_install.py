"""A peer that needs a newer Python gets one, or is not measured."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.install import Unavailable, install
from bench.peers.registry import PEERS


def fake_python(folder: Path, version: str) -> Path:
    """A program that says it is this version, and makes a folder where it is asked for one."""
    folder.mkdir()
    python = folder / f"python{version.rpartition('.')[0]}"
    python.write_text(f'#!/bin/sh\ncase "$1" in -c) echo {version};; *) : > "$0.used";; esac\n')
    python.chmod(0o755)
    return python


@pytest.fixture
def only_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in which programs are looked for."""
    monkeypatch.setattr("bench.install.WORK_FOLDER", tmp_path / "work")
    monkeypatch.setattr(sys, "version_info", (3, 11, 7))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


def test_a_peer_gets_a_python_that_is_new_enough(only_folder: Path) -> None:
    python = fake_python(only_folder, "3.13.0")
    with pytest.raises(Unavailable):  # the environment that this one makes is empty
        install(PEERS["oban"])
    assert Path(f"{python}.used").exists()


def test_without_such_a_python_the_peer_is_unavailable(only_folder: Path) -> None:
    fake_python(only_folder, "3.11.9")
    with pytest.raises(Unavailable, match=r"it needs Python 3\.12 or newer"):
        install(PEERS["oban"])
