"""The folder of the data: its default, HOWDAH_HOME, and unusual paths."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from howdah.embedded import join, stop
from howdah.embedded.home import default_path, find_home
from howdah.embedded.wire import Session

from .support import ask, query_with_asyncpg, until_stopped


@pytest.mark.parametrize(
    "name",
    [
        "with a space",
        "it's quoted",
        'say "hello", $HOME `id` \\ 100%',
        "ünïcödé",
        "long/" + "/".join(["x" * 30] * 6),
    ],
)
async def test_any_path_works(folder: Path, template_home: Path, name: str) -> None:
    home = folder / name
    home.mkdir(parents=True)
    shutil.copytree(template_home / "pg", home / "pg")
    try:
        with join(home) as server:
            assert ask(server.dsn, "select current_database()") == "howdah"
            data = await query_with_asyncpg(server.dsn, "show data_directory")
            assert data == str(home / "pg")
        until_stopped(home)
    finally:
        stop(home)


def test_a_socket_folder_outside_the_home_is_removed_with_the_server(folder: Path) -> None:
    home = folder / ("y" * 120)
    with join(home) as server:
        sockets = Path(server.dsn.partition("host=")[2].partition("&")[0])
        assert sockets.parent == Path("/tmp")
        assert sockets.stat().st_mode & 0o777 == 0o700
        server.stop()
    assert not sockets.exists()


def test_howdah_home_sets_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/user")
    monkeypatch.delenv("HOWDAH_HOME", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert default_path() == Path("/home/user/.local/share/howdah")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert default_path() == Path("/home/user/Library/Application Support/howdah")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert default_path() == Path("/data/howdah")
    monkeypatch.setenv("HOWDAH_HOME", "/elsewhere")
    assert default_path() == Path("/elsewhere")


def test_variables_of_another_server_have_no_effect(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPORT", "6543")
    monkeypatch.setenv("PGDATA", "/nowhere")
    monkeypatch.setenv("PGHOST", "db.example.org")
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    with join() as server:
        assert ask(server.dsn, "select current_database()") == "howdah"
        with Session(find_home(home).socket, "howdah") as session:
            assert session.parameters["client_encoding"] == "UTF8"
