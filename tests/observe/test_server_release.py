"""The doctor warns if the server is older than the newest known minor release."""

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
from tests.observe.support import open_store
from tests.support import Database
from tools.test_matrix import VERSIONS


async def examine_release(db: Database) -> Check:
    async with open_store(db) as store:
        diagnosis = await observe.examine(store)
    (check,) = [check for check in diagnosis.checks if check.name == "server_release"]
    return check


def version(db: Database) -> tuple[int, int]:
    return divmod(int(db.value("select current_setting('server_version_num')")), 10_000)


async def test_an_older_release_is_a_warning_with_advice(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    major, minor = version(db)
    monkeypatch.setitem(release.NEWEST, major, minor + 2)
    check = await examine_release(db)
    assert check.level is Level.WARNING
    assert (
        f"The server runs PostgreSQL {major}.{minor}; {major}.{minor + 2} was known on"
        in check.sentence
    )
    assert str(release.SEEN_ON) in check.sentence
    assert "apt upgrade" in check.advice
    assert "pip" not in check.advice
    assert check.value == 2


async def test_the_advice_for_the_embedded_server_is_to_upgrade_its_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = short_folder()
    monkeypatch.setenv("HOWDAH_HOME", str(home))
    for name in ("HOWDAH_DSN", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(release, "NEWEST", dict.fromkeys(range(14, 40), 99))
    try:
        async with Queue() as queue:
            diagnosis = await observe.examine(queue.store)
    finally:
        stop(home)
        shutil.rmtree(home)
    (check,) = [check for check in diagnosis.checks if check.name == "server_release"]
    assert check.level is Level.WARNING
    assert "pip install --upgrade 'howdah[embedded]'" in check.advice


@pytest.mark.parametrize("ahead", [0, -1, None])
async def test_the_newest_a_newer_and_an_unknown_release_are_fine(
    db: Database, monkeypatch: pytest.MonkeyPatch, ahead: int | None
) -> None:
    major, minor = version(db)
    if ahead is None:
        monkeypatch.delitem(release.NEWEST, major)
    else:
        monkeypatch.setitem(release.NEWEST, major, minor + ahead)
    check = await examine_release(db)
    assert check.level is Level.FINE
    assert check.advice == ""


def test_the_table_has_the_release_of_the_embedded_package() -> None:
    """Fails if only the package was upgraded: then check every row of the table."""
    binaries = find_binaries()
    major, minor = map(int, binaries.version.split(".")[:2])
    assert release.NEWEST[major] >= minor


def test_the_table_has_the_releases_of_the_test_matrix() -> None:
    assert {int(major) for major in VERSIONS} == release.NEWEST.keys()
    for tested in VERSIONS.values():
        version_parts = re.match(r"(\d+)\.(\d+)", tested)
        assert version_parts
        assert release.NEWEST[int(version_parts[1])] >= int(version_parts[2])
    assert date.today() >= release.SEEN_ON
