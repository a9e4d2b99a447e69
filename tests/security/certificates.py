"""Certificates: a certificate of its own for a test server, and PostgreSQL binaries with TLS."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tools.test_matrix import VersionUnavailable, binaries

SSL = "--with-openssl"


def binaries_with_tls() -> Path:
    """Find binaries that speak TLS: installed ones, or those that `make test-matrix` fetches."""
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if _speaks_tls(folder):
            return folder
    try:
        folder = binaries("18.6.0")
    except VersionUnavailable as problem:
        pytest.skip(f"TLS NOT TESTED: no PostgreSQL with OpenSSL here, and {problem}")
    if not _speaks_tls(folder):
        pytest.skip(f"TLS NOT TESTED: {folder} was built without OpenSSL")
    return folder


def _speaks_tls(folder: Path) -> bool:
    config = folder / "pg_config"
    if not config.exists() or not (folder / "postgres").exists():
        return False
    done = subprocess.run([config, "--configure"], capture_output=True, text=True)
    return SSL in done.stdout or "--with-ssl=openssl" in done.stdout


def self_signed(folder: Path, host: str, owner: int) -> tuple[Path, Path]:
    """Make a key and a certificate of its own for a host; returns both."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("TLS NOT TESTED: install openssl, which makes the certificates of this test")
    key, certificate = folder / "server.key", folder / "server.crt"
    names = f"subjectAltName=DNS:{host}"
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", f"/CN={host}", "-addext", names, "-keyout", key, "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )
    for path, mode in ((key, 0o600), (certificate, 0o644)):
        os.chown(path, owner, -1)
        path.chmod(mode)
    return key, certificate
