"""The embedded server and its reaper get a short list of variables, and no secret of the caller."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from howdah.embedded.environment import PASSED
from tests.support.waiting import wait_until

from .support import UserProcess, reapers, server_pid

MODES = [
    "as the machine allows",
    pytest.param(
        "without namespaces",
        marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root runs it as another user"),
    ),
]


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads /proc")
@pytest.mark.parametrize("mode", MODES)
def test_no_process_of_the_server_gets_a_secret(empty_home: Path, folder: Path, mode: str) -> None:
    folder.chmod(0o755)
    path = os.environ["PATH"] if mode == MODES[0] else "/nowhere"
    secrets = {"API_TOKEN": "s3cret", "PGPASSWORD": "s3cret", "HOWDAH_DSN": "", "TZ": "Asia/Tokyo"}
    with UserProcess(empty_home, **secrets, PATH=path) as user:
        user.line()
        wait_until(lambda: reapers(empty_home), "there is a reaper")
        server = psutil.Process(server_pid(empty_home))
        for process in (server, *reapers(empty_home)):
            variables = process.environ()
            # a shell between us and the server may add these three by itself
            assert variables.keys() <= {*PASSED, "LC_ALL", "PWD", "SHLVL", "_"}, process
            assert variables["TZ"] == "Asia/Tokyo"
