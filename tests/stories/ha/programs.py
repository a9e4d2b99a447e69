"""Programs: where etcd and Patroni are, or what to install.

`make test-ha` must not skip anything silently. So a missing program is a failure, which says what
to install.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache

import pytest

from tests.support.processes import ROOT

PATRONI = ROOT / ".ha" / "bin" / "patroni"


@cache
def find_patroni() -> str:
    if not PATRONI.exists():
        pytest.fail("PATRONI NOT TESTED: run `make test-ha`, which installs it into .ha/")
    return str(PATRONI)


@cache
def find_etcd() -> str:
    """Return the path of etcd; install it if we are root."""
    apt = shutil.which("apt-get")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (
        (),
        ("install", "-y", "--no-install-recommends", "etcd-server"),
        ("update",),
        ("install", "-y", "--no-install-recommends", "etcd-server"),
    ):
        if words and (os.geteuid() != 0 or apt is None):
            break
        if words:
            subprocess.run([str(apt), "-qq", *words], capture_output=True, env=quiet, timeout=300)
        if path := shutil.which("etcd"):
            return path
    pytest.fail(
        "PATRONI NOT TESTED: install Debian's package `etcd-server`, or any other etcd 3.4 or "
        "newer, so that `etcd` is on PATH"
    )
