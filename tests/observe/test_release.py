"""The doctor warns of a server that lacks a minor release which we know of."""

from __future__ import annotations

import re
import shutil
from datetime import date

import pytest

from howdah import Queue, observe
from howdah.embedded import stop
from howdah.embedded.binaries import find_binaries
from howdah.observe import Check, Level
from howdah.observe.doctor import release
from tests.embedded.conftest import short_folder
from tests.observe.support import asking
from tests.support import Database
from tools.test_matrix import VERSIONS


async def examined(db: Database) -> Check:
    async with asking(db) as store:
        found = await observe.examine(store)
    (check,) = [one for one in found.checks if one.name == "server_release"]
    return check


def version(db: Database) -> tuple[int, int]:
    return divmod(int(db.value("select current_setting('server_version_num')")), 10_000)


async def test_an_older_release_is_a_warning_that_says_what_to_do(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    major, minor = version(db)
    monkeypatch.setitem(release.NEWEST, major, minor + 2)
    check = await examined(db)
    assert check.level is Level.WARNING
    assert f"PostgreSQL {major}.{minor} runs; {major}.{minor + 2} was known on" in check.sentence
    assert str(release.SEEN_ON) in check.sentence
    assert "apt upgrade" in check.advice
    assert "pip" not in check.advice
    assert check.value == 2


async def test_of_the_embedded_server_the_package_is_to_be_upgraded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = short_folder()
    monkeypatch.setenv("HOWDAH_HOME", str(home))
    for name in ("HOWDAH_DSN", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(release, "NEWEST", dict.fromkeys(range(14, 40), 99))
    try:
        async with Queue() as queue:
            found = await observe.examine(queue.store)
    finally:
        stop(home)
        shutil.rmtree(home)
    (check,) = [one for one in found.checks if one.name == "server_release"]
    assert check.level is Level.WARNING
    assert "pip install --upgrade 'howdah[embedded]'" in check.advice


@pytest.mark.parametrize("ahead", [0, -1, None])
async def test_the_newest_a_newer_and_an_unknown_one_are_fine(
    db: Database, monkeypatch: pytest.MonkeyPatch, ahead: int | None
) -> None:
    major, minor = version(db)
    if ahead is None:
        monkeypatch.delitem(release.NEWEST, major)
    else:
        monkeypatch.setitem(release.NEWEST, major, minor + ahead)
    check = await examined(db)
    assert check.level is Level.FINE
    assert check.advice == ""


def test_the_table_knows_the_server_of_the_embedded_package() -> None:
    """Red when the package was upgraded and the table was not: look at all lines then."""
    found = find_binaries()
    major, minor = map(int, found.version.split(".")[:2])
    assert release.NEWEST[major] >= minor


def test_the_table_knows_what_the_matrix_is_tested_on() -> None:
    assert {int(major) for major in VERSIONS} == release.NEWEST.keys()
    for tested in VERSIONS.values():
        found = re.match(r"(\d+)\.(\d+)", tested)
        assert found
        assert release.NEWEST[int(found[1])] >= int(found[2])
    assert date.today() >= release.SEEN_ON
